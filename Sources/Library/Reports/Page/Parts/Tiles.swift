import KeyhaulKit

/// The counts that stand under a verdict, each with its sign: color says nothing that the sign and the words don't.
package struct Tiles {
  package enum Style: String {
    case moves, stays, lost, gone
    case plain
  }

  package struct Tile {
    package let style: Style
    package let symbol: String
    package let count: Int
    package let words: String

    package init(style: Style, symbol: String, count: Int, words: String) {
      self.style = style
      self.symbol = symbol
      self.count = count
      self.words = words
    }
  }

  package let tiles: [Tile]

  package init(tiles: [Tile]) { self.tiles = tiles }

  package func write(to page: inout Markup) {
    page.newLine()
    page.element("ul", ["class": "tiles", "aria-label": "Summary"]) { page in
      for tile in tiles {
        page.element("li", ["class": tile.count == 0 ? tile.style.rawValue + " none" : tile.style.rawValue]) { page in
          page.element("p") { page in
            page.element("b", Amounts.grouped(tile.count))
            page.element("span", ["class": "symbol", "aria-hidden": "true"], tile.symbol)
          }
          page.words(" " + tile.words)
        }
      }
    }
  }
}
