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

  package func write(to page: inout Markup) {
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

  package static func write(_ commands: [String], to page: inout Markup) {
    page.element("pre") { page in
      for command in commands { write(command, to: &page) }
    }
  }

  /// A command whose words stay whole where the line is short.
  private static func write(_ command: String, to page: inout Markup) {
    page.element("code") { page in
      for (index, word) in command.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
        if index > 0 { page.words(" ") }
        page.element("span", String(word))
      }
    }
  }
}
