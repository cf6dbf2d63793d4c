import ArchivedKeychain
import Foundation
import KeychainFormats
import KeychainStore
import Migration

/// The document of `keychain-items/1`.
struct ItemDocument {
  /// "device" or "archive", and its name.
  let source: (kind: String, name: String)
  /// The place of each row among all items of the source, in the order in which a backup numbers them. A row without
  /// one, such as of an item that would be added, has no index.
  let indexes: [RowReference: Int]
  /// Whether secrets are shown. Those of items that ask for their owner never are.
  let revealsSecrets: Bool

  /// - Parameter outcome: What the verb did besides.
  func document(of rows: [ItemRow], _ outcome: [(String, JSONValue)] = []) -> JSONValue {
    .object(
      [
        ("format", "keychain-items/1"), ("source", ["kind": .string(source.kind), "name": .string(source.name)]),
        ("items", .array(rows.map(entry))),
      ] + outcome)
  }

  private func entry(_ row: ItemRow) -> JSONValue {
    let kind = row.summary.kind
    var fields: [(String, JSONValue)] = indexes[row.summary.reference].map { [("index", .count($0))] } ?? []
    fields += [
      ("kind", .string(kind.reportName)), ("table", .string(kind.rawValue)),
      ("protection", .text(row.protection?.rawValue)),
    ]
    switch row {
    case .item(let stored):
      fields.append(("readable", true))
      fields.append(("attributes", Self.attributes(of: stored.item)))
      if revealsSecrets, stored.accessControl == nil, let secret = stored.item.secret {
        fields.append(("secret", secret.withBytes { Self.secret($0) }))
      }
    case .unreadable(let unreadable):
      fields.append(("readable", false))
      if let fault = unreadable.fault { fields.append(("reason", .string(Self.reason(fault).rawValue))) }
      if let text = row.faultText { fields.append(("detail", .string(text))) }
    }
    return .object(fields)
  }

  /// A search reports rows that nothing will open; one whose key is locked ends it.
  private static func reason(_ fault: RowFault) -> Reason {
    switch fault {
    case .undecodable: .malformed
    case .locked, .keyUnavailable: .noClassKey
    }
  }

  /// In the order of Apple's schema, then those that it does not know.
  private static func attributes(of item: KeychainItem) -> JSONValue {
    let known = AttributeTable.definitions(of: item.kind).map(\.code).filter { item[$0] != nil }
    let others = Set(item.attributes.keys).subtracting(known).sorted()
    return .object((known + others).compactMap { code in item[code].map { (code.rawValue, value($0)) } })
  }

  /// A value with its type: text and numbers as they are, dates in UTC with all of their fraction, data in base64.
  static func value(_ value: PropertyValue) -> JSONValue {
    switch value {
    case .null: .null
    case .boolean(let flag): .boolean(flag)
    case .integer(let number): .integer(number)
    case .unsignedInteger(let number): .string(String(number))
    case .real(let number): .number(number)
    case .date(let date): .string(Timestamp.text(of: date))
    case .data(let bytes): ["base64": .string(Data(bytes).base64EncodedString())]
    case .string(let text): .string(text)
    case .uid(let number): .string(String(number))
    case .array(let elements), .set(let elements): .array(elements.map(Self.value))
    case .dictionary(let dictionary):
      .object(dictionary.entries.map { ($0.key.stringValue ?? "\($0.key)", Self.value($0.value)) })
    }
  }

  private static func secret(_ bytes: UnsafeRawBufferPointer) -> JSONValue {
    var fields: [(String, JSONValue)] = [("base64", .string(Data(bytes).base64EncodedString()))]
    if let text = String(validating: bytes, as: UTF8.self) { fields.append(("text", .string(text))) }
    return .object(fields)
  }
}

extension KeychainStore {
  /// The place of each row among all items, in the order in which a backup numbers them. Needs no key.
  func itemIndexes() throws(KeychainStoreError) -> [RowReference: Int] {
    let summaries = try rowSummaries(includingTombstones: false)
    return Dictionary(uniqueKeysWithValues: summaries.enumerated().map { ($1.reference, $0) })
  }
}
