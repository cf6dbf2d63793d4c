import KeyhaulKit

/// The section with the next steps in order, each with commands to copy.
package struct StepList {
  /// A step in one or more sentences, with its commands.
  package struct Step {
    package let text: String
    package let commands: [String]

    package init(text: String, commands: [String] = []) {
      self.text = text
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
            page.element("p", step.text)
            guard !step.commands.isEmpty else { return }
            Self.write(step.commands, to: &page)
          }
        }
      }
    }
  }

  /// Writes commands, one on each line.
  package static func write(_ commands: [String], to page: inout HTMLWriter) {
    page.element("pre") { page in
      for command in commands { write(command, to: &page) }
    }
  }

  /// Writes a command so that lines break only between its words.
  private static func write(_ command: String, to page: inout HTMLWriter) {
    page.element("code") { page in
      for (index, word) in command.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
        if index > 0 { page.text(" ") }
        page.element("span", String(word))
      }
    }
  }
}

/// The counts below a verdict. Each has a color, and a symbol and a label that repeat its meaning.
package struct Tiles {
  package enum Style: String {
    case moves, stays, lost, gone
    case plain
  }

  package struct Tile {
    package let style: Style
    package let symbol: String
    package let count: Int
    package let text: String

    package init(style: Style, symbol: String, count: Int, text: String) {
      self.style = style
      self.symbol = symbol
      self.count = count
      self.text = text
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
          page.text(" " + tile.text)
        }
      }
    }
  }
}
