package import KeyhaulKit

/// The text of a plan below its heading.
///
/// It starts with groups of items: those that are removed, move, stay behind or are lost. The apps to sign in to again
/// and the limits of a backup follow. The counts are the last line.
///
/// `PlanReport` writes the lines above. The first one is from `PlanVerdict`, or from `BackupCondition` if the backup
/// cannot be restored as it is.
package struct PlanText {
  let plan: MigrationPlan
  let source: ReportSource
  let targetName: String
  /// Whether the target is locked. The names of some of its items then cannot be read.
  let isTargetLocked: Bool
  let showsAll: Bool
  /// The step that saves the one-time passwords; `nil` if there are none.
  var codesEntry: Checklist.Entry?

  package init(
    plan: MigrationPlan, source: ReportSource, targetName: String, isTargetLocked: Bool, showsAll: Bool
  ) {
    self.plan = plan
    self.source = source
    self.targetName = targetName
    self.isTargetLocked = isTargetLocked
    self.showsAll = showsAll
  }

  package func lines(style: TextStyle) -> [String] {
    var lines = removedLines(style)
    lines += migratingLines(style)
    for warning in ArrivalWarning.allCases { lines += warnedLines(warning, style) }
    lines += Reason.allCases.filter { !$0.isDamage }.flatMap { stayingLines(for: $0, style) }
    lines += encryptedNameLines(style)
    lines += damageLines(style: style)
    lines += SignInText(summaries: plan.byApp(source.apps), targetName: targetName, showsAll: showsAll)
      .lines(style: style)
    if let codesEntry {
      lines += WordWrap.lines(of: style.adapted(UntrustedText.escaped(codesEntry.text)), columns: style.width)
      lines += codesEntry.commands.map { "  " + style.adapted(UntrustedText.escaped($0)) } + [""]
    }
    lines += source.blindSpotLines(style: style, showsAll: showsAll)
    if let absence = source.sourceDeviceItems?.absence {
      lines += WordWrap.lines(of: style.adapted(UntrustedText.escaped("\(absence).")), columns: style.width)
    }
    return lines + WordWrap.lines(of: summaryLine, columns: style.width)
  }

  /// Returns the lines that explain the numbers of encrypted items; none if there are no such items.
  private func encryptedNameLines(_ style: TextStyle) -> [String] {
    let encryptedItems = plan.decisions.filter(Self.isEncrypted)
    guard !encryptedItems.isEmpty else { return [] }
    let groups = Set(encryptedItems.map(Self.encryptedGroup))
    let hint = showsAll || groups.count == encryptedItems.count ? "" : " -v shows each in its own row."
    return WordWrap.lines(
      of: "An encrypted item's name is encrypted too; its number is its position in the backup.\(hint)",
      columns: style.width) + [""]
  }

  /// Returns the lines about unreadable items, by reason.
  package func damageLines(style: TextStyle) -> [String] {
    Reason.allCases.filter(\.isDamage).flatMap { unreadableLines(for: $0, style) }
  }

  /// Returns the decisions with this reason, or those without a reason if it is `nil`. Only one group is in memory at a
  /// time.
  private func decisions(with reason: Reason?) -> [MigrationPlan.Decision] {
    plan.decisions.filter { $0.outcome.reason == reason }
  }

  /// Returns the meanings of the symbols that occur; none if there are no items.
  package func legend(style: TextStyle) -> [String] {
    let summary = plan.summary
    let meanings: [(text: String, count: Int)] = [
      ("- removed", summary.removed), ("+ new", summary.byChange[.new, default: 0]),
      ("~ replaces", summary.byChange[.replaces, default: 0]),
      ("= already there", summary.byChange[.identical, default: 0]),
      ("^ the existing item is kept", summary.byChange[.keepsExisting, default: 0]),
      ("< stays behind", summary.staysBehind), ("! cannot be read", summary.unreadable),
    ]
    let gap = "    "
    var lines: [String] = []
    for meaning in meanings where meaning.count > 0 {
      if let lastLine = lines.last, lastLine.count + gap.count + meaning.text.count <= style.width {
        lines[lines.count - 1] = lastLine + gap + meaning.text
      } else {
        lines.append("  " + meaning.text)
      }
    }
    return lines.isEmpty ? [] : lines + [""]
  }

  /// Returns whether an item stays behind with an encrypted name.
  package static func isEncrypted(_ decision: MigrationPlan.Decision) -> Bool {
    if case .staysBehind = decision.outcome { decision.identity.isEncrypted } else { false }
  }

  /// Returns the name of an item if only its position is known.
  package static func encryptedItemName(_ decision: MigrationPlan.Decision) -> String {
    "(encrypted, item \(decision.index))"
  }

  /// The last line: "12 will move (10 new, 1 replaced, 1 already there), 3 stay behind, 1 cannot be read, 0 removed."
  ///
  /// "0 stay behind" is only for a device, because a backup does not contain all items that stay behind.
  package var summaryLine: String {
    let summary = plan.summary
    let keptCount = summary.byChange[.keepsExisting, default: 0]
    let changes: [(count: Int, text: String)] = [
      (summary.byChange[.new, default: 0], "new"), (summary.byChange[.replaces, default: 0], "replaced"),
      (summary.byChange[.identical, default: 0], "already there"),
      (keptCount, keptCount == 1 ? "existing item kept" : "existing items kept"),
    ]
    let changeTexts = changes.filter { $0.count > 0 }.map { "\(HumanReadable.grouped($0.count)) \($0.text)" }
    let detail = changeTexts.isEmpty ? "" : " (\(changeTexts.joined(separator: ", ")))"
    let removal =
      summary.removed == 0 ? "0 removed" : "\(HumanReadable.grouped(summary.removed)) removed from \(targetName)"
    let stayingClause =
      summary.staysBehind == 0 && !source.isDevice
      ? "" : "\(HumanReadable.grouped(summary.staysBehind)) \(summary.staysBehind == 1 ? "stays" : "stay") behind, "
    let warningClause = Explanation.warningClause(for: summary.byWarning)
    return "\(HumanReadable.grouped(summary.migrates)) \(will) \(movement)\(detail)\(warningClause), \(stayingClause)"
      + "\(HumanReadable.grouped(summary.unreadable)) cannot be read, \(removal)."
  }

  private func removedLines(_ style: TextStyle) -> [String] {
    guard !plan.removed.isEmpty else { return [] }
    let items = ReportItemTable(plan.removed, showsAll: showsAll, row: removedRow)
    let encryptedCount = plan.removed.count(where: \.isEncrypted)
    var advice =
      plan.onlyRemoves
      ? "No item replaces them, so restore refuses to remove them."
      : "iOS removes the items on the device before it restores. To keep them, add \(SuggestedCommands.keepingExisting)."
    let onlyCopyCount = source.onlyCopies(removedBy: plan)
    if onlyCopyCount > 0 {
      let subject = onlyCopyCount == 1 ? "1 of them" : "Up to \(HumanReadable.grouped(onlyCopyCount)) of them"
      advice += " \(subject) may be the only intact copy of an item that is lost in \(source.name)."
    }
    if encryptedCount > 0, isTargetLocked {
      advice +=
        " The names of \(HumanReadable.count(encryptedCount, "item")) cannot be read while \(targetName) is locked."
    }
    return groupLines(
      "Will be removed from \(targetName) (\(HumanReadable.grouped(plan.removed.count)))", items, style, color: .red,
      advice: advice)
  }

  /// Returns the row of an item that the restore removes from the target.
  package func removedRow(_ identity: ItemDescriptor) -> ReportItemTable.Row {
    ReportItemTable.Row(
      symbol: "-", kind: identity.kind, name: removedName(identity), protection: "",
      accessGroup: identity.accessGroup)
  }

  /// Returns the name of a removed item, or its state and access group if its name is encrypted.
  private func removedName(_ identity: ItemDescriptor) -> String {
    guard identity.isEncrypted else { return ItemText.name(identity) }
    let state = isTargetLocked ? "locked" : "cannot be decrypted"
    return identity.accessGroup.map { "(\(state), of \($0))" } ?? "(\(state))"
  }

  /// "will", or "could" for a backup that cannot be restored as it is.
  private var will: String { source.condition.isUsable ? "will" : "could" }
  private var capitalizedWill: String { source.condition.isUsable ? "Will" : "Could" }

  /// The verb for the items that the target gets: "move", or "be restored" to the source device.
  private var movement: String { plan.isSameDevice == true ? "be restored" : "move" }

  private func migratingLines(_ style: TextStyle) -> [String] {
    let decisions = decisions(with: nil)
    guard !decisions.isEmpty else { return ["\(capitalizedWill) \(movement) (0)", ""] }
    return groupLines(
      "\(capitalizedWill) \(movement) (\(HumanReadable.grouped(decisions.count)))", table(of: decisions), style,
      color: .green, advice: nil)
  }

  /// Returns the items that arrive but may be unusable, with the recommended action.
  private func warnedLines(_ warning: ArrivalWarning, _ style: TextStyle) -> [String] {
    let decisions = plan.decisions.filter { $0.warning == warning }
    guard !decisions.isEmpty else { return [] }
    let title =
      switch warning {
      case .migratesButUnusable: "\(capitalizedWill) move, but \(will) be unusable there"
      case .useNotKnown: "\(capitalizedWill) \(movement), but may be unusable there"
      }
    return groupLines(
      "\(title) (\(HumanReadable.grouped(decisions.count)))",
      because: "\(warning.rawValue): \(warning.explanation.headline)",
      table(of: decisions), style, color: .yellow, advice: warning.explanation.action)
  }

  private func stayingLines(for reason: Reason, _ style: TextStyle) -> [String] {
    let decisions = decisions(with: reason)
    guard !decisions.isEmpty else { return [] }
    let (fact, advice) = sentences(for: reason)
    return groupLines(
      "\(decisions.count == 1 ? "Stays" : "Stay") behind "
        + "(\(HumanReadable.grouped(decisions.count)))", because: "\(reason.rawValue): \(fact)",
      table(of: decisions), style, color: .yellow, advice: advice)
  }

  private func unreadableLines(for reason: Reason, _ style: TextStyle) -> [String] {
    let decisions = decisions(with: reason)
    guard !decisions.isEmpty else { return [] }
    return groupLines(
      "Cannot be read (\(HumanReadable.grouped(decisions.count)))",
      because: "\(reason.rawValue): \(reason.explanation.headline)", table(of: decisions), style, color: .red,
      advice: reason.explanation.action)
  }

  private func table(of decisions: [MigrationPlan.Decision]) -> ReportItemTable {
    ReportItemTable(
      decisions, showsAll: showsAll, group: { Self.isEncrypted($0) ? Self.encryptedGroup($0) : nil }, row: row)
  }

  private static func encryptedGroup(_ decision: MigrationPlan.Decision) -> ReportItemTable.EncryptedGroup {
    ReportItemTable.EncryptedGroup(kind: decision.identity.kind, protection: decision.protection)
  }

  /// Returns the fact behind a group, and the recommended action, with the names of the devices.
  private func sentences(for reason: Reason) -> (fact: String, advice: String) {
    let device = source.sourceDevice
    return switch reason {
    case .deviceBound:
      (
        "only the device key of \(device) can decrypt them",
        "These can be restored only to \(device). Sign in again on \(targetName) to replace them. If one of them is "
          + "the key to an app's database, that database cannot be decrypted there."
      )
    case .backupNotEncrypted:
      (
        "the backup has no password, so only \(device) can decrypt them",
        "To move them, make a new backup of \(device) with a password."
      )
    default: (reason.explanation.headline, reason.explanation.action)
    }
  }

  /// Returns the row of a decision.
  package func row(_ decision: MigrationPlan.Decision) -> ReportItemTable.Row {
    let name: String
    var remark = ""
    switch decision.outcome {
    case .migrates:
      name = ItemText.name(decision.identity)
      remark = decision.detail ?? ""
    case .staysBehind:
      name = Self.isEncrypted(decision) ? Self.encryptedItemName(decision) : ItemText.name(decision.identity)
    case .unreadable:
      name = decision.identity.isEncrypted ? "(encrypted)" : ItemText.name(decision.identity)
      remark = decision.detail.map { "item \(decision.index), \($0)" } ?? ""
    }
    return ReportItemTable.Row(
      symbol: Self.symbol(of: decision.outcome), kind: decision.identity.kind, name: name,
      protection: ItemText.protection(decision.protection), remark: remark,
      accessGroup: decision.identity.accessGroup, index: decision.index)
  }

  static func symbol(of outcome: MigrationPlan.Outcome) -> String {
    switch outcome {
    case .migrates(.new): "+"
    case .migrates(.replaces): "~"
    case .migrates(.keepsExisting): "^"
    case .migrates(.identical): "="
    case .staysBehind: "<"
    case .unreadable: "!"
    }
  }

  private func groupLines(
    _ title: String, because reason: String? = nil, _ items: ReportItemTable, _ style: TextStyle, color: Color,
    advice: String?
  ) -> [String] {
    let heading = style.adapted(UntrustedText.escaped(title))
    var lines = [heading]
    if let reason {
      lines = WordWrap.labeled(heading + "  ", style.adapted(UntrustedText.escaped(reason)), columns: style.width)
    }
    if let first = lines.first { lines[0] = style.painted(first, color) }
    lines += items.lines(style: style)
    if let advice, advice != "Nothing." {
      lines += WordWrap.labeled("    ", style.adapted(UntrustedText.escaped(advice)), columns: style.width)
    }
    return lines + [""]
  }
}
