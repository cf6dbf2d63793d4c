import KeychainFormats

/// Rows under a heading, as wide as they need to be and no wider than the terminal.
///
/// Cells are names and may be hostile: they are escaped here. Where the table is too wide, the widest flexible column
/// gives way first and its cells are cut with an ellipsis.
package struct Table {
  package struct Column {
    package let title: String
    package var isRightAligned = false
    /// Whether cells may be cut where the table is too wide.
    package var isFlexible = false

    package init(_ title: String, rightAligned: Bool = false, flexible: Bool = false) {
      self.title = title
      self.isRightAligned = rightAligned
      self.isFlexible = flexible
    }
  }

  /// Below this, cutting a column would leave nothing to recognize.
  package static let minimumColumnWidth = 8

  package let columns: [Column]
  package private(set) var rows: [[String]] = []

  package init(_ columns: [Column]) { self.columns = columns }

  /// Adds a row. Missing cells are empty, surplus cells are left out.
  package mutating func add(_ cells: [String]) {
    rows.append(columns.indices.map { $0 < cells.count ? cells[$0] : "" })
  }

  /// Whether every cell is shown whole.
  package func fits(_ style: TextStyle) -> Bool { Self.total(widths(of: cells(style))) <= style.width }

  private static func total(_ widths: [Int]) -> Int { widths.reduce(0, +) + 2 * max(0, widths.count - 1) }

  private func cells(_ style: TextStyle) -> [[String]] {
    rows.map { row in row.map { style.adapted(HostileText.shown($0)) } }
  }

  /// What each column needs.
  private func widths(of cells: [[String]]) -> [Int] {
    columns.indices.map { index in
      cells.reduce(DisplayWidth.columns(of: columns[index].title)) {
        max($0, DisplayWidth.columns(of: $1[index]))
      }
    }
  }

  /// The heading, then the rows, without trailing spaces.
  package func lines(style: TextStyle) -> [String] {
    let cells = cells(style)
    var widths = widths(of: cells)
    fit(&widths, into: style.width)

    func line(_ cells: [String]) -> String {
      let padded = columns.indices.map { index in
        DisplayWidth.padded(
          DisplayWidth.cut(cells[index], columns: widths[index], ellipsis: style.ellipsis),
          columns: widths[index], rightAligned: columns[index].isRightAligned)
      }
      let text = padded.joined(separator: "  ")
      return String(text.dropLast(text.reversed().prefix { $0 == " " }.count))
    }
    return [style.painted(line(columns.map(\.title)), .bold)] + cells.map(line)
  }

  private func fit(_ widths: inout [Int], into limit: Int) {
    var excess = Self.total(widths) - limit
    while excess > 0 {
      let candidates = columns.indices.filter { columns[$0].isFlexible && widths[$0] > Self.minimumColumnWidth }
      guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { return }
      widths[widest] -= 1
      excess -= 1
    }
  }
}
