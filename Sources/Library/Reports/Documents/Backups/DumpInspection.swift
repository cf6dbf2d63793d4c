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
  package var isPartlyUnreadable: Bool { disclaimer.secretCounts.undecryptable > 0 }

  // MARK: Text

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    (listsItems ? listLines(style) : overview(style)) + disclaimer.lines(style: style)
  }

  private func overview(_ style: TextStyle) -> [String] {
    let rows: [(label: String, text: String)] = [
      (dump.format.noun, dump.format.phrase), ("items", itemsText), ("classes", classesText),
      ("secrets", secretsText), ("sha256", String(hexadecimal: digest)),
    ]
    return [UntrustedText.escaped(name)]
      + rows.flatMap { row in
        WordWrap.labeled(
          DisplayWidth.padded(row.label, columns: Self.labelColumns), style.adapted(UntrustedText.escaped(row.text)),
          columns: max(style.width, Self.labelColumns + Self.minimumTextColumns))
      }
  }

  private static let labelColumns = 10
  private static let minimumTextColumns = 40

  /// The number of items, and the numbers by kind.
  private var itemsText: String {
    let total = HumanReadable.count(dump.items.count, "item")
    let kinds = countsByKind.map { "\(HumanReadable.grouped($0.count)) \(ItemText.kind($0.kind))" }
    return kinds.isEmpty ? total : "\(total): \(kinds.joined(separator: ", "))"
  }

  /// The numbers of items by protection class.
  private var classesText: String {
    let classes = countsByProtection.map { "\(HumanReadable.grouped($0.count)) \($0.protection.phrase)" }
    return classes.isEmpty ? "none named" : classes.joined(separator: " · ")
  }

  private var secretsText: String {
    let counts = disclaimer.secretCounts
    let states: [(count: Int, text: String)] = [
      (counts.readable, "not encrypted"), (counts.absent, "not in the \(dump.format.noun)"),
      (counts.undecryptable, "not readable"),
    ]
    let secrets = states.filter { $0.count > 0 }.map { "\(HumanReadable.grouped($0.count)) \($0.text)" }
    return secrets.isEmpty ? "none" : secrets.joined(separator: ", ")
  }

  /// The kinds that occur, with their numbers of items.
  private var countsByKind: [(kind: ItemKind, count: Int)] {
    ItemKind.allCases.map { kind in (kind: kind, count: dump.items.count { $0.kind == kind }) }
      .filter { $0.count > 0 }
  }

  /// The protection classes that occur, with their numbers of items.
  private var countsByProtection: [(protection: ProtectionClass, count: Int)] {
    ProtectionClass.allCases.map { protection in
      (protection: protection, count: dump.items.count { $0.protection == protection })
    }.filter { $0.count > 0 }
  }

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

  /// Returns the text for an item in the STATE column.
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
    let document: JSONValue = [
      "format": "dump-inspection/1", "name": .string(name), "sha256": .string(String(hexadecimal: digest)),
      "by_table": .object(countsByKind.map { ($0.kind.rawValue, .count($0.count)) }),
      "by_protection": .object(countsByProtection.map { ($0.protection.rawValue, .count($0.count)) }),
    ]
    return document.adding([disclaimer.field] + (listsItems ? [("items", .each(dump.items) { Self.json($0) })] : []))
  }

  private static func json(_ item: DumpedItem) -> JSONValue {
    let identity = item.item.map(ItemDescriptor.init) ?? ItemDescriptor(undecryptable: item.kind)
    var fields: [(String, JSONValue)] =
      [("index", .count(item.index)), ("entry", .count(item.entryPosition))] + JSONValue.identity(identity)
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
