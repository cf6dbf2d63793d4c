import KeyhaulKit

/// How many items come to another device on which way, and which.
struct TransferLines {
  let comparison: MigrationComparison

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var table = Table(
      [.init("TRANSFER METHOD", flexible: true)]
        + TransferAnswer.Verdict.allCases.map { .init($0.words.uppercased(), rightAligned: true) })
    for way in TransferWay.allCases {
      let counts = comparison[way]
      table.add([way.words] + TransferAnswer.Verdict.allCases.map { Amounts.grouped(counts[$0, default: 0]) })
    }
    return table.lines(style: style) + (showsAll ? [""] + itemLines(style) : [])
  }

  /// Each item with its four answers.
  private func itemLines(_ style: TextStyle) -> [String] {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("NAME", flexible: true), .init("PASSWORD"), .init("WITHOUT"),
      .init("DIRECT"), .init("ICLOUD"),
    ])
    for item in comparison.items {
      let name = item.identity.isSealed ? "(encrypted)" : ItemText.name(item.identity)
      table.add([String(item.index), name] + TransferWay.allCases.map { item.ways[$0].verdict.symbol })
    }
    let meaning =
      "To another device: by a backup with or without a password, a direct transfer, and iCloud Keychain. + arrives  < "
      + "does not arrive  ? not known"
    return WordWrap.lines(of: meaning, columns: style.width) + table.lines(style: style)
  }
}
