import KeyhaulKit
import Reports

/// Obtains the user's consent before a restore changes the target. The user must agree to the removal of items and to
/// damage in the backup. On a terminal, the user must also agree to the restore itself.
struct RestoreConfirmation {
  let prepared: PreparedRestore
  /// Whether `--accept-damage` was given.
  let acceptsDamage: Bool
  /// Whether the restore carries out a saved plan, which the user has already seen.
  let isPlanned: Bool
  /// Whether the user chose what happens to the target's existing items, with `--existing` or a saved plan.
  let isPolicyChosen: Bool
  let session: Session

  var damageNotice: BackupDamageNotice { prepared.damageNotice }

  /// Whether the restore may have to ask a question: there is a terminal, and the flags do not answer every question.
  var mayAsk: Bool {
    let requiresAcceptDamage = !acceptsDamage && !prepared.opened.backup.damage.isEmpty
    return (!session.common.yes || requiresAcceptDamage) && session.terminal() != nil
  }

  /// Rejects a restore that would remove items and restore none. Accepts it if the backup contains no items, because the
  /// user then wants an empty keychain.
  func rejectRemovalOnlyRestore(_ report: PlanReport) throws(CommandError) {
    let hasItems = !prepared.opened.backup.items.isEmpty
    let restoresNothing = report.plan.onlyRemoves || report.plan.decisions.isEmpty && !report.plan.removed.isEmpty
    guard restoresNothing, hasItems else { return }
    let removed = HumanReadable.count(report.plan.removed.count, "item")
    let emptyList = prepared.selection.flatMap { $0.indexes.isEmpty ? $0.path : nil }
    let advice =
      emptyList.map { "list items in \($0); --only without --existing merge removes the existing items" }
      ?? report.warning?.advice
      ?? "plan shows why" + (report.target.isSimulator ? "" : "; to empty \(report.target.name), use device erase")
    throw CommandError(
      .refused,
      "no item of \(report.source.name) would be restored to \(report.target.name), so nothing was removed "
        + "from it",
      why: "the restore would restore none of \(HumanReadable.count(prepared.opened.backup.items.count, "item")) and "
        + "remove \(removed)", try: advice)
  }

  /// Warns before a restore removes items that may be the only intact copies of items that are lost in the backup.
  ///
  /// - Parameter willRestore: Whether the restore follows, and is not only shown.
  /// - Throws: `.damaged` if the restore follows with `--yes` but without a choice about the target's existing items.
  ///   `--accept-damage` does not replace this choice.
  func warnAboutOnlyCopies(_ report: PlanReport, willRestore: Bool) throws(CommandError) {
    let count = report.removedOnlyCopyCount
    guard count > 0 else { return }
    let (source, target) = (report.source.name, report.target.name)
    let removedCount = report.plan.removed.count
    let removedItems =
      switch removedCount {
      case 1: "the 1 item removed from \(target)"
      case count: "each of the \(HumanReadable.grouped(count)) items removed from \(target)"
      default:
        "\(HumanReadable.grouped(count)) of the \(HumanReadable.grouped(removedCount)) items removed from \(target)"
      }
    let why = "\(removedItems) may be the only intact copy of an item that is lost in \(source)"
    guard !willRestore || !session.common.yes || isPolicyChosen else {
      throw CommandError(
        .damaged,
        "\(source) is damaged and cannot replace all items that would be removed; nothing was restored", why: why,
        try:
          "\(SuggestedCommands.keepingExisting) keeps the existing items; --existing replace removes them anyway; use "
          + "either with --accept-damage")
    }
    session.warn(
      "\(source) is damaged and cannot replace all items that are removed from \(target)", why: why,
      try: "\(SuggestedCommands.keepingExisting) keeps the existing items", ignoresQuiet: true)
  }

  /// Asks the user to agree to everything that no flag accepts.
  ///
  /// - Throws: `.refused`, `.damaged` or `.usage` if Keyhaul cannot ask; `.failed` if the user does not agree.
  func obtain(for report: PlanReport) throws(CommandError) {
    try rejectRemovalOnlyRestore(report)
    try warnAboutOnlyCopies(report, willRestore: true)
    let question = RestoreQuestion(report)
    func lines() -> [String] {
      question.lines(style: session.messageStyle, showsAll: session.common.verbose > 0)
    }
    // If the damage question was asked, the next question does not repeat its lines. If nothing is removed
    // or overwritten, there is no next question.
    let wasAsked = try damageNotice.accept(
      onto: report.target.name, isAccepted: acceptsDamage, in: session, showing: lines)
    if let warning = report.warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    if session.common.yes {
      if let newer = question.newerWarning { session.warn(newer.message, why: newer.why, try: newer.advice) }
    } else if question.hasLosses {
      try session.confirm(question.text, action: question.action, showing: wasAsked ? [] : lines())
    } else if question.addsOrOverwrites, !isPlanned, !wasAsked, let terminal = session.terminal() {
      try session.ask(question.text, on: terminal, showing: lines())
    }
  }
}
