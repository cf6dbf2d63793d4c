/// A table of text that fits the width of the terminal.
///
/// Cells may be untrusted names and are escaped here. If the table is too wide, the widest flexible column shrinks
/// first, and its cells are cut with an ellipsis.
package struct Table {
  package struct Column {
    package let title: String
    package var isRightAligned = false
    /// Whether cells may be cut if the table is too wide.
    package var isFlexible = false

    package init(_ title: String, rightAligned: Bool = false, flexible: Bool = false) {
      self.title = title
      self.isRightAligned = rightAligned
      self.isFlexible = flexible
    }
  }

  /// The narrowest width to which a column shrinks, so that its cells remain recognizable.
  package static let minimumColumnWidth = 8

  package let columns: [Column]
  private var rows: [[String]] = []
  /// The rows that precede `rows`. They are not stored: `row` creates the cells on each access.
  private let generatedRows: (count: Int, row: (Int) -> [String])

  package init(_ columns: [Column]) { self.init(columns, count: 0) { _ in [] } }

  /// Creates a table with very many rows.
  ///
  /// - Parameters:
  ///   - columns: The columns.
  ///   - count: The number of rows.
  ///   - row: Returns the cells of a row, as for `add(_:)`. Called several times for each row.
  package init(_ columns: [Column], count: Int, row: @escaping (Int) -> [String]) {
    self.columns = columns
    generatedRows = (count, row)
  }

  /// Appends a row. Missing cells are empty; surplus cells are ignored.
  package mutating func add(_ cells: [String]) { rows.append(cells) }

  /// Returns whether all cells fit without being cut.
  package func fits(_ style: TextStyle) -> Bool { !style.cutsText || Self.total(widths(style)) <= style.width }

  private var rowCount: Int { generatedRows.count + rows.count }

  /// Returns the cells of a row, created again on each access so that they are not all in memory next to the lines.
  private func cells(_ position: Int, _ style: TextStyle) -> [String] {
    let generatedCount = generatedRows.count
    let cells = position < generatedCount ? generatedRows.row(position) : rows[position - generatedCount]
    return columns.indices.map { $0 < cells.count ? style.adapted(UntrustedText.escaped(cells[$0])) : "" }
  }

  /// Returns the width of a table. Two spaces separate its columns.
  private static func total(_ widths: [Int]) -> Int { widths.reduce(0, +) + 2 * max(0, widths.count - 1) }

  /// Returns the width that each column needs.
  private func widths(_ style: TextStyle) -> [Int] {
    var widths = columns.map { DisplayWidth.columns(of: $0.title) }
    for position in 0..<rowCount {
      for (index, cell) in cells(position, style).enumerated() {
        widths[index] = max(widths[index], DisplayWidth.columns(of: cell))
      }
    }
    return widths
  }

  /// Returns the heading and the rows, without trailing spaces.
  package func lines(style: TextStyle) -> [String] { lines(style, widths(style)) }

  /// Returns the heading and the rows, or the lines of the fallback if a cell would have to be cut.
  package func lines(style: TextStyle, fallback: () -> Table) -> [String] {
    let widths = widths(style)
    return !style.cutsText || Self.total(widths) <= style.width ? lines(style, widths) : fallback().lines(style: style)
  }

  private func lines(_ style: TextStyle, _ needed: [Int]) -> [String] {
    var widths = needed
    if style.cutsText { fit(&widths, into: style.width) }

    func line(_ cells: [String]) -> String {
      let padded = columns.indices.map { index in
        DisplayWidth.padded(
          style.cut(cells[index], columns: widths[index]),
          columns: widths[index], rightAligned: columns[index].isRightAligned)
      }
      let text = padded.joined(separator: "  ")
      guard let last = text.utf8.lastIndex(where: { $0 != UInt8(ascii: " ") }) else { return "" }
      // Cuts between bytes, because a space and a combining mark after it are one character.
      return String(text[..<text.utf8.index(after: last)])
    }
    return [style.painted(line(columns.map(\.title)), .bold)] + (0..<rowCount).map { line(cells($0, style)) }
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
