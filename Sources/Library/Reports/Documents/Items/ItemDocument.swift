package import KeyhaulKit

/// The document of `keychain-items/1`.
package struct ItemDocument {
  /// "device" or "archive", and its name.
  package let source: (kind: String, name: String)
  /// The place of each row among all items of the source, in the order in which a backup numbers them. A row without
  /// one, such as of an item that would be added, has no index.
  package let indexes: [RowReference: Int]
  /// Whether secrets are shown. Those of items that ask for their owner never are.
  package let revealsSecrets: Bool
  /// Whether an access control keeps a secret back: a dump has it in clear all the same.
  package let keepsGuarded: Bool

  package init(
    source: (kind: String, name: String), indexes: [RowReference: Int], revealsSecrets: Bool, keepsGuarded: Bool = true
  ) {
    self.keepsGuarded = keepsGuarded
    self.source = source
    self.indexes = indexes
    self.revealsSecrets = revealsSecrets
  }

  /// An item of whatever source.
  package struct Entry {
    package let index: Int?
    package let kind: ItemKind
    package let protection: ProtectionClass?
    package let content: Content
    /// Of a dump's item that can be read: whether its secret is there.
    package var hasSecret: Bool?

    package init(index: Int?, kind: ItemKind, protection: ProtectionClass?, content: Content) {
      self.index = index
      self.kind = kind
      self.protection = protection
      self.content = content
    }

    package enum Content {
      case readable(KeychainItem)
      case unreadable(Reason?, detail: String?)
    }
  }

  /// The document before its items: whoever has them adds the object of each, and what a verb did besides at the end.
  package func stream() -> JSONStream {
    let origin: JSONValue = ["kind": .string(source.kind), "name": .string(source.name)]
    return JSONStream(["format": "keychain-items/1", "source": origin, "items": []])
  }

  package func object(_ entry: Entry) -> JSONValue {
    var fields: [(String, JSONValue)] = entry.index.map { [("index", .count($0))] } ?? []
    fields += [
      ("kind", .string(entry.kind.reportName)), ("table", .string(entry.kind.rawValue)),
      ("protection", .text(entry.protection?.rawValue)),
    ]
    switch entry.content {
    case .readable(let item):
      fields.append(("readable", true))
      fields.append(("attributes", Self.attributes(of: item)))
      if let hasSecret = entry.hasSecret { fields.append(("has_secret", .boolean(hasSecret))) }
      if revealsSecrets, !(keepsGuarded && item.asksForOwner), let secret = item.secret {
        fields.append(("secret", Self.secret(secret)))
      }
    case .unreadable(let reason, let detail):
      fields.append(("readable", false))
      if let reason { fields.append(("reason", .string(reason.rawValue))) }
      if let detail { fields.append(("detail", .string(detail))) }
    }
    return .object(fields)
  }

  /// In the order of Apple's schema, then those that it does not know.
  private static func attributes(of item: KeychainItem) -> JSONValue {
    let known = AttributeTable.definitions(of: item.kind).map(\.code).filter { item[$0] != nil }
    let others = Set(item.attributes.keys).subtracting(known).sorted()
    return .object((known + others).compactMap { code in item[code].map { (code.rawValue, value($0)) } })
  }

  /// A value with its type: text and numbers as they are, dates in UTC with all of their fraction, data in base64.
  package static func value(_ value: PropertyValue) -> JSONValue {
    switch value {
    case .null: .null
    case .boolean(let flag): .boolean(flag)
    case .integer(let number): .integer(number)
    case .unsignedInteger(let number): .string(String(number))
    case .real(let number): .number(number)
    case .date(let date) where (Timestamp.earliest...Timestamp.latest).contains(date.secondsSinceReferenceDate):
      .string(Timestamp.text(of: date))
    // A moment that RFC 3339 has no text for.
    case .date(let date): ["seconds": .string("\(date.secondsSinceReferenceDate)")]
    case .data(let bytes): ["base64": .string(Base64Digits.text(of: bytes))]
    case .string(let text): .string(text)
    case .uid(let number): .string(String(number))
    case .array(let elements), .set(let elements): .array(elements.map(Self.value))
    case .dictionary(let dictionary):
      .object(dictionary.entries.map { ($0.key.stringValue ?? "\($0.key)", Self.value($0.value)) })
    }
  }

  /// Written out of the secret's own memory.
  private static func secret(_ secret: SensitiveBytes) -> JSONValue {
    var fields: [(String, JSONValue)] = [("base64", .sensitive(secret, .base64))]
    if secret.withBytes({ UTF8Scalars.isValid($0) }) { fields.append(("text", .sensitive(secret, .text))) }
    return .object(fields)
  }
}

extension ItemDocument.Entry {
  package init(_ row: ItemRow, index: Int?) {
    self.index = index
    kind = row.kind
    protection = row.protection
    content = row.item.map(Content.readable) ?? .unreadable(row.reason, detail: row.faultText)
  }
}

extension KeychainItem {
  /// Whether an access control guards the secret: a virtual device has nobody to ask.
  package var asksForOwner: Bool { self[.accessControl]?.dictionaryValue != nil }
}

/// An item of a list, or what is left of one, wherever it is from.
package struct ItemRow {
  /// Its place: its table with its number there or, of a backup, with its position among all items.
  package let reference: RowReference
  /// The item in clear; `nil` if it cannot be read.
  package let item: KeychainItem?
  /// What a person knows it by. Hostile.
  package let identity: ItemIdentity
  package let protection: ProtectionClass?
  package let isSynchronizable: Bool
  package let modificationDate: KeychainDate?
  /// Why it cannot be read.
  package let reason: Reason?
  /// The same in words, where there are more.
  package let faultText: String?
  /// Whether a key that is not in memory now keeps it from being read.
  package let isLocked: Bool

  package var kind: ItemKind { reference.kind }

  package init(_ stored: StoredItem) {
    self.init(stored.item, stored.summary)
  }

  package init(_ row: KeychainRow) {
    switch row.content {
    case .item(let item): self.init(item, row.summary)
    case .fault(let fault):
      var text: String?
      if case .undecodable(let reason) = fault { text = reason }
      let summary = row.summary
      self.init(
        sealed: ItemIdentity(sealed: summary.kind, accessGroup: summary.accessGroup), at: summary.reference,
        summary.protection, reason: Self.reason(fault), faultText: text, isSynchronizable: summary.isSynchronizable,
        modificationDate: summary.modificationDate, isLocked: !fault.isPermanent)
    }
  }

  private init(_ item: KeychainItem, _ summary: RowSummary) {
    self.init(item, at: summary.reference, isSynchronizable: summary.isSynchronizable)
  }

  /// An item that can be read.
  package init(_ item: KeychainItem, at reference: RowReference, isSynchronizable: Bool? = nil) {
    self.reference = reference
    self.item = item
    identity = ItemIdentity(item)
    protection = item.protection
    self.isSynchronizable = isSynchronizable ?? item.isSynchronizable
    modificationDate = item.modificationDate
    reason = nil
    faultText = nil
    isLocked = false
  }

  /// An item that cannot be read here.
  package init(
    sealed identity: ItemIdentity, at reference: RowReference, _ protection: ProtectionClass?, reason: Reason?,
    faultText: String?, isSynchronizable: Bool = false, modificationDate: KeychainDate? = nil, isLocked: Bool = false
  ) {
    self.reference = reference
    item = nil
    self.identity = identity
    self.protection = protection
    self.isSynchronizable = isSynchronizable
    self.modificationDate = modificationDate
    self.reason = reason
    self.faultText = faultText
    self.isLocked = isLocked
  }

  /// In the order of the kinds, then of the rows: as a backup numbers them.
  package static func all(of found: FoundItems) -> [ItemRow] {
    let rows = found.items.map { ItemRow($0) } + found.undecodable.map { ItemRow($0) }
    return rows.sorted { (order($0.kind), $0.reference.rowID) < (order($1.kind), $1.reference.rowID) }
  }

  private static func order(_ kind: ItemKind) -> Int { ItemKind.allCases.firstIndex(of: kind) ?? 0 }

  /// A search reports rows that nothing will open; one whose key is locked ends it.
  private static func reason(_ fault: RowFault) -> Reason {
    switch fault {
    case .undecodable: .malformed
    case .locked, .keyUnavailable: .noClassKey
    }
  }
}
