import KeyhaulKit

/// The counts below a verdict. Each has a color, and a symbol and a label that repeat its meaning.
struct Tiles {
  enum Style: String {
    case moves, stays
    /// Cannot be read, or is missing.
    case lost
    /// Is removed from the target.
    case gone
    case plain
  }

  struct Tile {
    let style: Style
    let symbol: String
    let count: Int
    let text: String
  }

  let tiles: [Tile]

  func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("ul", ["class": "tiles", "aria-label": "Summary"]) { page in
      for tile in tiles {
        page.element("li", ["class": tile.count == 0 ? tile.style.rawValue + " none" : tile.style.rawValue]) { page in
          page.element("p") { page in
            page.element("b", HumanReadable.grouped(tile.count))
            page.element("span", ["class": "symbol", "aria-hidden": "true"], tile.symbol)
          }
          page.text(" " + tile.text)
        }
      }
    }
  }
}
