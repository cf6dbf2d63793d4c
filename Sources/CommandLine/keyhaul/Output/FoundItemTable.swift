import KeyhaulKit
import Reports

/// The table of items that the `item` commands print.
enum FoundItemTable {
  /// Returns the table. If the table is too wide, it shows dates without times, so that names are not cut. If the table
  /// is still too wide, it also abbreviates the protection classes.
  static func table(of rows: [KeychainEntry], style: TextStyle) -> Table {
    let longTables = [LocalTimeFormat.local, LocalTimeFormat.localDay].map {
      table(of: rows, isShort: false, formatDate: $0)
    }
    return longTables.first { $0.fits(style) } ?? table(of: rows, isShort: true, formatDate: LocalTimeFormat.localDay)
  }

  private static func table(of rows: [KeychainEntry], isShort: Bool, formatDate: (KeychainDate) -> String) -> Table {
    let disambiguators = ItemText.disambiguators(rows.map { $0.item })
    let showsDisambiguators = disambiguators.contains { !$0.isEmpty }
    var table = Table(
      [
        .init("KIND"), .init(nameTitle(of: Set(rows.map(\.kind))), flexible: true),
        .init("ACCOUNT", flexible: true), .init(ItemText.protectionTitle(isShort: isShort)),
        .init("CHANGED"),
      ] + (showsDisambiguators ? [.init(ItemText.distinctionTitle, flexible: true)] : []))
    for (row, disambiguator) in zip(rows, disambiguators) {
      table.add(
        [
          ItemText.kind(row.kind), name(of: row), row.identity.account ?? "",
          ItemText.protection(row.protection, isShort: isShort),
          row.modificationDate.map(formatDate) ?? "–",
        ] + (showsDisambiguators ? [disambiguator] : []))
    }
    return table
  }

  /// Returns the title of the name column. Items of one kind have the same naming attribute; a mixed table uses "NAME".
  private static func nameTitle(of kinds: Set<ItemKind>) -> String {
    guard let kind = kinds.first, kinds.count == 1 else { return "NAME" }
    return switch kind {
    case .genericPassword: "SERVICE"
    case .internetPassword: "SERVER"
    case .certificate, .key: "LABEL"
    }
  }

  private static func name(of row: KeychainEntry) -> String {
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
