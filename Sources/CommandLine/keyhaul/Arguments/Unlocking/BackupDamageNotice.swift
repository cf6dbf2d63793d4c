import KeyhaulKit

/// Tells the user about a backup's damage before a restore.
struct BackupDamageNotice {
  let opened: UnlockedBackup
  /// The backup's name, as the user typed it.
  let name: String

  /// Warns about damage that has not been reported yet, and about damaged class keys that no item needs.
  ///
  /// - Parameter isStatedLater: Whether a question or an error will state the damage. If so, only damaged class keys
  ///   that no item needs cause a warning.
  func warn(in session: Session, isStatedLater: Bool = false) {
    for damage in isStatedLater ? [] : opened.damage {
      switch damage {
      // These were reported when the backup was opened.
      case .keychainChanged, .finding: continue
      case .classKeys(let report):
        session.warn(
          "\(name)'s keybag is damaged", why: report,
          try: "another copy; items that need a missing or damaged key are lost in this copy")
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

  /// Makes sure that the user accepts a damaged backup: with the flag, or by answering a question. `--yes` does not
  /// accept it.
  ///
  /// - Parameters:
  ///   - device: The target's name.
  ///   - isAccepted: Whether `--accept-damage` was given.
  ///   - lines: The lines to show above the question.
  /// - Returns: Whether the user was asked.
  /// - Throws: `.damaged` if Keyhaul cannot ask; `.failed` if the user does not agree. Nothing was changed.
  func accept(
    onto device: String, isAccepted: Bool, in session: Session, showing lines: () -> [String]
  ) throws(CommandError) -> Bool {
    let damage = opened.damage
    guard !damage.isEmpty, !isAccepted else { return false }
    let details = damage.map(\.description).joined(separator: "; ")
    // Without Status.plist, it is unknown whether anything is missing.
    let isUnconfirmed = damage.allSatisfy { $0 == .statusMissing || $0 == .finding(.stateMissing) }
    let verdict = isUnconfirmed ? "may not be complete" : "is damaged"
    guard let terminal = session.terminal() else {
      throw CommandError(
        .damaged, "\(name) \(verdict), so nothing was restored to \(device)", why: details,
        try: "another copy; --accept-damage restores what is left in this copy")
    }
    try session.ask(
      "\(name) \(verdict): \(details). Items may be missing from it. Restore the rest to \(device)?", on: terminal,
      showing: lines() + [""])
    return true
  }
}
