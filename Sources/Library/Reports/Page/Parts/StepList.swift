import KeyhaulKit

/// What to do now, in order, with the commands to copy.
package struct StepList {
  package struct Step {
    package let words: String
    package let commands: [String]

    package init(words: String, commands: [String] = []) {
      self.words = words
      self.commands = commands
    }
  }

  package let steps: [Step]

  package init(steps: [Step]) { self.steps = steps }

  package func write(to page: inout HTMLWriter) {
    guard !steps.isEmpty else { return }
    page.newLine()
    page.element("section", ["class": "next"]) { page in
      page.element("h2", "What to do next")
      page.element("ol") { page in
        for step in steps {
          page.element("li") { page in
            page.element("p", step.words)
            guard !step.commands.isEmpty else { return }
            Self.write(step.commands, to: &page)
          }
        }
      }
    }
  }

  package static func write(_ commands: [String], to page: inout HTMLWriter) {
    page.element("pre") { page in
      for command in commands { write(command, to: &page) }
    }
  }

  /// A command whose words stay whole where the line is short.
  private static func write(_ command: String, to page: inout HTMLWriter) {
    page.element("code") { page in
      for (index, word) in command.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
        if index > 0 { page.words(" ") }
        page.element("span", String(word))
      }
    }
  }
}

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

  package func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("ul", ["class": "tiles", "aria-label": "Summary"]) { page in
      for tile in tiles {
        page.element("li", ["class": tile.count == 0 ? tile.style.rawValue + " none" : tile.style.rawValue]) { page in
          page.element("p") { page in
            page.element("b", HumanReadable.grouped(tile.count))
            page.element("span", ["class": "symbol", "aria-hidden": "true"], tile.symbol)
          }
          page.words(" " + tile.words)
        }
      }
    }
  }
}
