import ArchivedKeychain
import KeychainFormats
import Migration
import VirtualDevice

/// One item's story as text.
struct StoryText {
  let story: ItemStory
  let source: MoveSource
  let target: String?

  func lines(style: TextStyle) -> [String] {
    let title = "\(story.identity.kind.noun) \"\(name)\""
    var lines = WordWrap.lines(of: style.adapted(HostileText.shown(title)), columns: style.width)
    for index in lines.indices { lines[index] = style.painted(lines[index], .bold) }
    func add(_ label: String, _ text: String) {
      lines += WordWrap.labelled(
        "  " + DisplayWidth.padded(label, columns: 10), style.adapted(HostileText.shown(text)), columns: style.width)
    }
    if let protection = story.protection {
      add("Class", "\(protection.phrase) (\(protection.rawValue))")
      add("Readable", protection.readability + (isGuarded ? "; and only for a person who proves to be there" : ""))
    }
    if let group = story.identity.accessGroup {
      let app = source.apps.app(of: group)
      add("App", app.kind == .group ? "group \(group)" : "\(app.text) (group \(group))")
    }
    if !story.prospects.isEmpty { lines += restores(style) }
    for (label, text) in facts { add(label, text) }
    if let advice = Self.advice(for: story) { add("Do", advice) }
    if let reason = story.reason { add("More", "keyhaul explain \(reason.rawValue)") }
    return lines
  }

  private var name: String {
    guard story.identity.isSealed else { return ItemText.name(story.identity) }
    return story.index.map { "(sealed, item \($0))" } ?? "(cannot be read)"
  }

  /// An access control guards it, as far as that is known.
  private var isGuarded: Bool { story.reason == .needsAuthentication }

  private func restores(_ style: TextStyle) -> [String] {
    var table = Table([
      .init(""), .init("to the same device", flexible: true), .init("to another device", flexible: true),
    ])
    for hasPassword in [true, false] {
      let cells = [true, false].map { onSameDevice in
        story.prospects[RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice)].map(Self.text) ?? "–"
      }
      table.add([hasPassword ? "with a password" : "without one"] + cells)
    }
    return table.lines(style: style.narrowed(by: 12)).enumerated().map { index, line in
      DisplayWidth.padded(index == 0 ? "  Restores" : "", columns: 12) + line
    }
  }

  private static func text(_ prospect: Prospect) -> String {
    switch prospect {
    case .arrives: "+ restored"
    case .staysBehind(let reason): "< \(reason.rawValue)"
    case .unreadable(let reason): "! \(reason.rawValue)"
    }
  }

  /// What happened here, and what it does there.
  private var facts: [(String, String)] {
    var facts: [(String, String)] = []
    switch story.place {
    case .archive(let index):
      let place = "item \(index) of \(source.name)"
      guard let decision = story.decision, let reason = decision.outcome.reason else {
        facts.append(("Here", "\(place); it opens with the keys at hand"))
        break
      }
      let why = decision.detail ?? reason.explanation.headline
      let what =
        switch decision.outcome {
        case .unreadable: "is damaged: \(why)"
        case .staysBehind, .migrates:
          // Its name is known where the device that made the backup is at hand.
          story.identity.isSealed
            ? "does not open with the keys at hand: \(why)"
            : "opens with the key of the device that made the backup, which is at hand, and with no other"
        }
      facts.append(("Here", "\(place); it \(what)"))
    case .device:
      if let decision = story.decision, let reason = decision.outcome.reason {
        facts += leftOut(because: reason)
        if let detail = decision.detail { facts.append(("Found", detail)) }
      } else {
        facts.append(("Here", "a backup of \(source.name) takes it along"))
      }
    case .deleted: facts += leftOut(because: .deleted)
    case .missing(let device, let rule):
      if let rule {
        facts.append(
          ("Here", "not in \(source.name); on \(device), whose backup left it out: \(rule.explanation.headline)"))
        facts.append(("Rule", rule.explanation.rule))
      } else {
        facts.append(
          (
            "Here",
            "not in \(source.name); on \(device) no rule keeps it from a backup: it came after this one was made"
          ))
      }
    case .targetOnly(let isRemoved):
      let there = target ?? "the target"
      facts.append(("Here", "not in \(source.name); an item of \(there) itself"))
      let fate = isRemoved ? ReportTerm.removed : .preserved
      facts.append(("Restore", "\(fate.explanation.headline) (\(fate.id))"))
    }
    if let target, let decision = story.onTarget { facts.append(("Target", "\(target): \(Self.text(decision))")) }
    return facts
  }

  private func leftOut(because reason: Reason) -> [(String, String)] {
    [
      ("Here", "a backup of \(source.name) leaves it out: \(reason.explanation.headline)"),
      ("Rule", reason.explanation.rule),
    ]
  }

  private static func text(_ decision: MigrationPlan.Decision) -> String {
    let detail = decision.detail.map { "; \($0)" } ?? ""
    switch decision.outcome {
    case .migrates(let change): return "\(change.explanation.headline) (\(change.rawValue))\(detail)"
    case .staysBehind(let reason): return "stays behind (\(reason.rawValue))\(detail)"
    case .unreadable(let reason): return "cannot be read (\(reason.rawValue))\(detail)"
    }
  }

  /// A word for the list of several.
  static func outcome(of story: ItemStory) -> String {
    if let reason = story.reason { return reason.rawValue }
    switch story.place {
    case .targetOnly(let isRemoved): return isRemoved ? "removed" : "preserved"
    case .missing: return "not in the archive"
    case .archive, .device, .deleted: return story.onTarget?.outcome.change?.rawValue ?? "migrates"
    }
  }

  /// What to do about it, where there is something to do.
  static func advice(for story: ItemStory) -> String? {
    if case .targetOnly(let isRemoved) = story.place {
      return isRemoved ? ReportTerm.removed.explanation.action : nil
    }
    if case .missing(_, nil) = story.place { return "Make a new backup." }
    if let reason = story.reason { return reason.explanation.action }
    return story.onTarget?.outcome.change.map(\.explanation.action)
  }
}
