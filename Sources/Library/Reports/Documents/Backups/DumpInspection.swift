package import KeyhaulKit

/// The contents of another tool's dump of a keychain (`dump-inspection/1`).
package struct DumpInspection {
  private let name: String
  private let dump: KeychainDump
  private let digest: [UInt8]
  private let listsItems: Bool
  private let disclaimer: DumpDisclaimer
  /// The differences between items with the same description, one text for each item.
  private let disambiguators: [String]
  /// The names of the items.
  private let names: [String]

  /// Creates the report about a dump.
  ///
  /// - Parameters:
  ///   - dump: The dump.
  ///   - name: The name that the user typed. Untrusted.
  ///   - digest: The SHA-256 digest of the file.
  ///   - listsItems: Whether to list every item.
  ///   - names: The name of each item for reports, in the items' order.
  ///   - disambiguators: The differences between items with the same description, one text for each item.
  package init(
    _ dump: KeychainDump, named name: String, digest: [UInt8], listsItems: Bool, names: [String],
    disambiguators: [String]
  ) {
    self.name = name
    self.dump = dump
    self.digest = digest
    self.listsItems = listsItems
    self.names = names
    self.disambiguators = disambiguators
    disclaimer = DumpDisclaimer(dump, named: name)
  }

  /// Whether parts of items cannot be decrypted or read.
  package var isPartlyUnreadable: Bool { disclaimer.counts.undecryptable > 0 }

  // MARK: Text

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    (listsItems ? listLines(style) : overview(style)) + disclaimer.lines(style: style)
  }

  private func overview(_ style: TextStyle) -> [String] {
    let kinds = ItemKind.allCases.compactMap { kind -> String? in
      let count = dump.items.count { $0.kind == kind }
      return count == 0 ? nil : "\(HumanReadable.grouped(count)) \(ItemText.kind(kind))"
    }
    let classes = ProtectionClass.allCases.compactMap { protection -> String? in
      let count = dump.items.count { $0.protection == protection }
      return count == 0 ? nil : "\(HumanReadable.grouped(count)) \(protection.phrase)"
    }
    let counts = disclaimer.counts
    let absent = "not in the \(dump.format.noun)"
    let secrets = [(counts.readable, "not encrypted"), (counts.absent, absent), (counts.undecryptable, "not readable")]
      .filter { $0.0 > 0 }.map { "\(HumanReadable.grouped($0.0)) \($0.1)" }
    let rows = [
      (dump.format.noun, dump.format.phrase),
      (
        "items",
        ([HumanReadable.count(dump.items.count, "item")] + [kinds.joined(separator: ", ")]).filter { !$0.isEmpty }
          .joined(separator: ": ")
      ),
      ("classes", classes.isEmpty ? "none named" : classes.joined(separator: " · ")),
      ("secrets", secrets.isEmpty ? "none" : secrets.joined(separator: ", ")),
      ("sha256", String(hexadecimal: digest)),
    ]
    return [UntrustedText.escaped(name)]
      + rows.flatMap { row in
        WordWrap.labeled(
          DisplayWidth.padded(row.0, columns: Self.labelColumns), style.adapted(UntrustedText.escaped(row.1)),
          columns: max(style.width, Self.labelColumns + 40))
      }
  }

  private static let labelColumns = 10

  private func listLines(_ style: TextStyle) -> [String] {
    guard !dump.items.isEmpty else { return ["The \(dump.format.noun) contains no items."] }
    return itemTable(isShort: false).lines(style: style) { itemTable(isShort: true) }
  }

  private func itemTable(isShort: Bool) -> Table {
    // A column with the same value in every row would only leave less room for the names.
    let showsState = dump.items.contains { !$0.hasSecret }
    let showsDistinctions = disambiguators.contains { !$0.isEmpty }
    var table = Table(
      [
        .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
        .init(ItemText.protectionTitle(isShort: isShort)),
      ] + (showsState ? [.init("STATE")] : []) + (showsDistinctions ? [.init("DIFFERS IN", flexible: true)] : []))
    for (position, item) in dump.items.enumerated() {
      table.add(
        [
          String(item.index), ItemText.kind(item.kind), names[position],
          ItemText.protection(item.protection, isShort: isShort),
        ] + (showsState ? [Self.state(of: item)] : []) + (showsDistinctions ? [disambiguators[position]] : []))
    }
    return table
  }

  /// Returns the parts of an item that could be read.
  private static func state(of item: DumpedItem) -> String {
    if item.item?.isTombstone == true { return "deleted" }
    return switch item.content {
    case .open: "readable"
    case .attributesOnly(_, nil): "no secret"
    case .attributesOnly(_, let fault?): "no secret: \(fault.reason.rawValue)"
    case .undecryptable(let fault, _): fault.reason.rawValue
    }
  }

  // MARK: JSON

  package var json: JSONValue {
    let byKind = ItemKind.allCases.compactMap { kind -> (String, JSONValue)? in
      let count = dump.items.count { $0.kind == kind }
      return count == 0 ? nil : (kind.rawValue, .count(count))
    }
    let byProtection = ProtectionClass.allCases.compactMap { protection -> (String, JSONValue)? in
      let count = dump.items.count { $0.protection == protection }
      return count == 0 ? nil : (protection.rawValue, .count(count))
    }
    let document: JSONValue = [
      "format": "dump-inspection/1", "name": .string(name), "sha256": .string(String(hexadecimal: digest)),
      "by_table": .object(byKind), "by_protection": .object(byProtection),
    ]
    return document.adding([disclaimer.field] + (listsItems ? [("items", .each(dump.items) { Self.json($0) })] : []))
  }

  private static func json(_ item: DumpedItem) -> JSONValue {
    let identity = item.item.map(ItemDescriptor.init) ?? ItemDescriptor(undecryptable: item.kind)
    var fields: [(String, JSONValue)] =
      [("index", .count(item.index)), ("entry", .count(item.entry))] + JSONValue.identity(identity)
    fields += [
      ("protection", .text(item.protection?.rawValue)), ("table_stated", .boolean(item.tableSource == .stated)),
      ("attributes_readable", .boolean(item.item != nil)), ("secret_readable", .boolean(item.hasSecret)),
    ]
    if item.isSecretRendered { fields.append(("secret_rendered", true)) }
    if !item.unusableAttributes.isEmpty {
      fields.append(("unusable_attributes", .array(item.unusableAttributes.map { .string($0.rawValue) })))
    }
    if let fault = item.fault {
      fields += [("reason", .string(fault.reason.rawValue)), ("detail", .string(fault.detail))]
    }
    return .object(fields)
  }
}
