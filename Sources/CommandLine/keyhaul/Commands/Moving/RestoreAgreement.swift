import KeyhaulKit
import Reports

/// The user's consent that is required before a restore changes a device or a Simulator's keychain. It covers the
/// items that the restore removes, and damage in the backup. On a terminal, it also covers the restore itself.
struct RestoreAgreement {
  let prepared: PreparedRestore
  /// `--accept-damage`.
  let acceptsDamage: Bool
  /// Whether a saved plan is carried out, which somebody has read.
  let isPlanned: Bool
  /// Whether somebody has said what becomes of the target's own items: with `--existing`, or by the saved plan.
  let isPolicyChosen: Bool
  let session: Session

  var damage: BackupDamageNotice { prepared.damage }

  /// Whether a person may have to be waited for.
  var isAsked: Bool {
    let mustAccept = !acceptsDamage && !prepared.opened.archive.damage.isEmpty
    return (!session.common.yes || mustAccept) && session.terminal() != nil
  }

  /// Refuses what only takes away: nothing of the backup arrives, and items of the target are removed all the same. That a
  /// backup which holds no item leaves an empty keychain is what was asked for.
  func refusePointless(_ report: PlanReport) throws(CommandFailure) {
    let holdsItems = !prepared.opened.archive.items.isEmpty
    let isPointless = report.plan.onlyRemoves || report.plan.decisions.isEmpty && !report.plan.removed.isEmpty
    guard isPointless, holdsItems else { return }
    let removed = HumanReadable.count(report.plan.removed.count, "item")
    let emptyList = prepared.selection.flatMap { $0.indexes.isEmpty ? $0.path : nil }
    let advice =
      emptyList.map { "list items in \($0); --only without --existing merge removes the existing items" }
      ?? report.warning?.advice
      ?? "plan shows why" + (report.target.isSimulator ? "" : "; to empty \(report.target.name), use device erase")
    throw CommandFailure(
      .refused,
      "no item of \(report.source.name) would be restored to \(report.target.name), so nothing was removed "
        + "from it",
      why: "the restore would restore none of \(HumanReadable.count(prepared.opened.archive.items.count, "item")) and "
        + "remove \(removed)", try: advice)
  }

  /// Says, before anything is changed, that good copies may go which the damaged backup cannot replace.
  ///
  /// - Parameter isChange: Whether the restore is about to be done, and not only shown.
  /// - Throws: `.damaged` where nobody is asked and nobody has said what becomes of the target's items: a yes to the
  ///   damage, or to everything, is none to this.
  func sayOnlyCopies(_ report: PlanReport, isChange: Bool) throws(CommandFailure) {
    let count = report.removedOnlyCopies
    guard count > 0 else { return }
    let (source, target) = (report.source.name, report.target.name)
    let removed = report.plan.removed.count
    let which =
      removed == 1
      ? "the 1 item removed from \(target)"
      : count == removed
        ? "each of the \(HumanReadable.grouped(removed)) items removed from \(target)"
        : "\(HumanReadable.grouped(count)) of the \(HumanReadable.grouped(removed)) items removed from \(target)"
    let why = "\(which) may be the only intact copy of an item that is lost in \(source)"
    guard !isChange || !session.common.yes || isPolicyChosen else {
      throw CommandFailure(
        .damaged,
        "\(source) is damaged and cannot replace all items that would be removed; nothing was restored", why: why,
        try:
          "\(SuggestedCommands.keepingExisting) keeps the existing items; --existing replace removes them anyway; use either "
          + "with --accept-damage")
    }
    session.warn(
      "\(source) is damaged and cannot replace all items that are removed from \(target)", why: why,
      try: "\(SuggestedCommands.keepingExisting) keeps the existing items", evenQuiet: true)
  }

  /// Asks for what has to be agreed to, or takes the flags for an answer.
  ///
  /// - Throws: `.refused`, `.damaged` or `.usage` where it cannot be done so; `.failed` after a no.
  func reach(on report: PlanReport) throws(CommandFailure) {
    try refusePointless(report)
    try sayOnlyCopies(report, isChange: true)
    let losses = RestoreLosses(report)
    func lines() -> [String] {
      losses.lines(style: session.messageStyle, showsAll: session.common.verbose > 0)
    }
    // What is shown above this question is not shown again, and where nothing is taken away its yes is enough.
    let wasAsked = try damage.accept(
      onto: report.target.name, isAccepted: acceptsDamage, in: session, showing: lines)
    if let warning = report.warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    if session.common.yes {
      if let newer = losses.lossText.newerWarning { session.warn(newer.message, why: newer.why, try: newer.advice) }
    } else if !losses.lossText.isEmpty {
      try session.confirm(losses.lossText.question, refusal: losses.lossText.refusal, showing: wasAsked ? [] : lines())
    } else if losses.lossText.bringsSomething, !isPlanned, !wasAsked, let terminal = session.terminal() {
      try session.ask(losses.lossText.question, on: terminal, showing: lines())
    }
  }
}
