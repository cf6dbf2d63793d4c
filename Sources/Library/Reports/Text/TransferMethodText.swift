import KeyhaulKit

/// The transfer methods as text: the number of items for each method, and the items by name.
struct TransferMethodText {
  let comparison: MigrationComparison

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var table = Table(
      [.init("TRANSFER METHOD", flexible: true)]
        + TransferAssessment.Verdict.allCases.map { .init($0.displayName.uppercased(), rightAligned: true) })
    for method in TransferMethod.allCases {
      let counts = comparison[method]
      table.add(
        [method.displayName] + TransferAssessment.Verdict.allCases.map { HumanReadable.grouped(counts[$0, default: 0]) }
      )
    }
    return table.lines(style: style) + (showsAll ? [""] + itemLines(style) : [])
  }

  /// Returns the table of items with the verdict for each transfer method.
  private func itemLines(_ style: TextStyle) -> [String] {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("NAME", flexible: true), .init("PASSWORD"), .init("WITHOUT"),
      .init("DIRECT"), .init("ICLOUD"),
    ])
    for item in comparison.items {
      let name = item.identity.isEncrypted ? "(encrypted)" : ItemText.name(item.identity)
      table.add([String(item.index), name] + TransferMethod.allCases.map { item.transfers[$0].verdict.symbol })
    }
    let meaning =
      "To another device: by a backup with or without a password, a direct transfer, and iCloud Keychain. + moves  < "
      + "does not move  ? not known"
    return WordWrap.lines(of: meaning, columns: style.width) + table.lines(style: style)
  }
}
