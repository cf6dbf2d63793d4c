import KeyhaulKit

/// What is known of a backup's damage before a restore of it.
struct BackupDamageNotice {
  let opened: UnlockedBackup
  /// The backup, as the user named it.
  let name: String

  /// Warns of what is wrong with the backup as a whole, as far as opening it has not said so, and of class keys that are
  /// damaged and that no item needs.
  ///
  /// - Parameter isAsked: Leaves out what a question or a refusal is about to name.
  func warn(in session: Session, isAsked: Bool = false) {
    for damage in isAsked ? [] : opened.damage {
      switch damage {
      // Said when the archive was opened.
      case .keychainChanged, .finding: continue
      case .classKeys(let report):
        session.warn(
          "\(name)'s keybag is damaged", why: report, try: "another copy; items of that class are lost in this copy")
      case .keychainSize, .statusMissing:
        session.warn(
          "\(name) may not be complete", why: damage.description,
          try: "another copy, or check its contents with verify")
      }
    }
    if let report = opened.keybagDamage, !opened.losesItemsToKeybag {
      session.warn("\(name)'s keybag is damaged", why: "\(report); no item needs it", try: "another copy for its files")
    }
  }

  /// Goes on with a backup that is known to be damaged only where that was agreed to: by the flag, or by a person. A yes
  /// to every other question is none to this one.
  ///
  /// - Parameter lines: Shown above the question.
  /// - Returns: Whether a person was asked.
  /// - Throws: `.damaged` where nobody can be asked; `.failed` after a no. Nothing was changed then.
  func accept(
    onto device: String, isAccepted: Bool, in session: Session, showing lines: () -> [String]
  ) throws(CommandFailure) -> Bool {
    let damage = opened.damage
    guard !damage.isEmpty, !isAccepted else { return false }
    let facts = damage.map(\.description).joined(separator: "; ")
    // Without Status.plist nothing says that anything is missing.
    let isUnconfirmed = damage.allSatisfy { $0 == .statusMissing || $0 == .finding(.stateMissing) }
    let verdict = isUnconfirmed ? "may not be complete" : "is damaged"
    guard let terminal = session.terminal() else {
      throw CommandFailure(
        .damaged, "\(name) \(verdict), so nothing was restored to \(device)", why: facts,
        try: "another copy; --accept-damage restores what is left in this copy")
    }
    try session.ask(
      "\(name) \(verdict): \(facts). Items may be missing from it. Restore the rest to \(device)?", on: terminal,
      showing: lines() + [""])
    return true
  }
}
