import ArchivedKeychain
import KeychainFormats
import Migration

/// What to do now, in order, with the commands to copy.
struct NextSteps {
  private let plan: PlanPage
  private let source: String
  private let target: String

  init(_ plan: PlanPage) {
    self.plan = plan
    source = ShellWord.quoted(plan.source.name)
    target = ShellWord.quoted(plan.target.name)
  }

  private struct Step {
    let words: String
    var commands: [String] = []
  }

  func write(to page: inout Markup) {
    let steps = plan.source.kind == .archive ? archiveSteps : deviceSteps
    guard !steps.isEmpty else { return }
    page.newLine()
    page.element("section", ["class": "next"]) { page in
      page.element("h2", "What to do next")
      page.element("ol") { page in
        for step in steps {
          page.element("li") { page in
            page.element("p", step.words)
            guard !step.commands.isEmpty else { return }
            page.element("pre") { page in
              for command in step.commands { write(command, to: &page) }
            }
          }
        }
      }
    }
  }

  /// A command whose words stay whole where the line is short.
  private func write(_ command: String, to page: inout Markup) {
    page.element("code") { page in
      for (index, word) in command.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
        if index > 0 { page.words(" ") }
        page.element("span", String(word))
      }
    }
  }

  private var archiveSteps: [Step] {
    let counts = plan.counts
    let closed = counts.byReason[.backupNotEncrypted, default: 0]
    var steps: [Step] = []
    if closed > 0 {
      let device = ShellWord.quoted(Markup.shortened(plan.source.deviceName ?? "DEVICE"))
      steps.append(
        Step(
          words: "Make a new backup with a password. It carries "
            + (closed == 1
              ? "the item that needs nothing else." : "the \(Amounts.grouped(closed)) items that need nothing else."),
          commands: ["keyhaul backup \(device) -o with-password.backup"]))
    }
    if counts.unreadable > 0 {
      steps.append(
        Step(
          words: "Look for another copy of the backup: \(Amounts.count(counts.unreadable, "item")) cannot be read in "
            + "this one. This tells whether a copy is whole:",
          commands: ["keyhaul verify COPY"]))
    }
    if counts.removed > 0, plan.policy == .replace {
      steps.append(
        Step(
          words: "To keep what is on \(Markup.shortened(plan.target.name)), plan to merge:",
          commands: ["keyhaul plan \(source) --to \(target) --existing merge"]))
    }
    if counts.staysBehind > closed, plan.target.sameDevice != true {
      steps.append(
        Step(
          words: "Keep \(Markup.shortened(plan.sourceDevice)) until the apps that matter to you are signed in on "
            + "\(Markup.shortened(plan.target.name))."))
    }
    if counts.migrates > 0 {
      let policy = plan.policy == .replace ? "" : " --existing \(plan.policy.rawValue)"
      steps.append(
        Step(
          words: "Restore exactly this: save the plan, then carry it out. It is refused if the backup or the device "
            + "has changed.",
          commands: [
            "keyhaul plan \(source) --to \(target)\(policy) -o move.plan",
            "keyhaul restore \(source) --to \(target) --plan move.plan",
          ]))
    }
    return steps
  }

  private var deviceSteps: [Step] {
    let backup = "family.backup"
    var steps = [
      Step(words: "Make a backup with a password.", commands: ["keyhaul backup \(source) -o \(backup)"])
    ]
    if plan.counts.migrates > 0 {
      steps.append(
        Step(
          words: "Plan with the backup, and restore it.",
          commands: [
            "keyhaul plan \(backup) --to \(target) -o move.plan",
            "keyhaul restore \(backup) --to \(target) --plan move.plan",
          ]))
    }
    return steps
  }
}
