import KeychainFormats

/// The counts that stand under a verdict, each with its sign: color says nothing that the sign and the words don't.
struct Tiles {
  enum Style: String {
    case moves, stays, lost, gone
    case plain
  }

  struct Tile {
    let style: Style
    let symbol: String
    let count: Int
    let words: String
  }

  let tiles: [Tile]

  func write(to page: inout Markup) {
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
