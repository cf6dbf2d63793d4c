import KeyhaulKit

/// The section with the next steps in order, each with commands to copy.
struct StepList {
  /// A step in one or more sentences, with its commands.
  struct Step {
    let text: String
    var commands: [String] = []
  }

  let steps: [Step]

  func write(to page: inout HTMLWriter) {
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
  static func write(_ commands: [String], to page: inout HTMLWriter) {
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
