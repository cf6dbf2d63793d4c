import KeyhaulKit
import Reports

/// The table of `item find`.
enum FoundItemTable {
  /// Where names would be cut, classes go by their codes and dates without their time: nobody knows an item by those.
  static func table(of rows: [ItemRow], style: TextStyle) -> Table {
    let whole = [TimeText.local, TimeText.localDay].map { table(of: rows, isShort: false, changed: $0) }
    return whole.first { $0.fits(style) } ?? table(of: rows, isShort: true, changed: TimeText.localDay)
  }

  private static func table(of rows: [ItemRow], isShort: Bool, changed: (KeychainDate) -> String) -> Table {
    let distinctions = ItemText.distinctions(rows.map { $0.item })
    let showsDistinctions = distinctions.contains { !$0.isEmpty }
    var table = Table(
      [
        .init("KIND"), .init(nameTitle(of: Set(rows.map(\.kind))), flexible: true),
        .init("ACCOUNT", flexible: true), .init(ItemText.protectionTitle(isShort: isShort)),
        .init("CHANGED"),
      ] + (showsDistinctions ? [.init(ItemText.distinctionTitle, flexible: true)] : []))
    for (row, distinction) in zip(rows, distinctions) {
      table.add(
        [
          ItemText.kind(row.kind), name(of: row), row.identity.account ?? "",
          ItemText.protection(row.protection, isShort: isShort),
          row.modificationDate.map(changed) ?? "–",
        ] + (showsDistinctions ? [distinction] : []))
    }
    return table
  }

  /// Items of one kind have one attribute that names them; a mixed table has a column for all of these.
  private static func nameTitle(of kinds: Set<ItemKind>) -> String {
    guard let kind = kinds.first, kinds.count == 1 else { return "NAME" }
    return switch kind {
    case .genericPassword: "SERVICE"
    case .internetPassword: "SERVER"
    case .certificate, .key: "LABEL"
    }
  }

  private static func name(of row: ItemRow) -> String {
    guard let item = row.item else { return "(cannot be read)" }
    let identity = row.identity
    return switch row.kind {
    case .genericPassword: identity.service ?? ""
    case .internetPassword: identity.server ?? ""
    case .certificate: identity.label ?? ""
    case .key: ItemText.name(of: item)
    }
  }
}
