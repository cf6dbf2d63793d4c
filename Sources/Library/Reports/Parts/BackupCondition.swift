package import KeyhaulKit

/// The condition of a backup, which decides whether it can be restored as it is.
package enum BackupCondition: Sendable, Hashable {
  /// Nothing that is known prevents a restore.
  case usable
  /// The backup does not state whether the device finished it.
  case unconfirmed
  /// The backup was changed after the device wrote it, and nothing in it is known to be lost.
  case changed
  /// A part of the backup is lost or damaged.
  case damaged
  /// The backup is a decrypted copy, which can only be read.
  case decryptedCopy

  /// Creates the condition of a backup.
  ///
  /// - Parameters:
  ///   - damage: The signs that items may be missing in the backup.
  ///   - findings: The findings about the backup.
  package init(damage: [BackupDamage], findings: [PlanDocument.Finding]) {
    // `nil` stands for damage that is not a finding.
    var signs: Set<BackupFinding.Kind?> = Set(
      findings.filter { !$0.isRestorable }.map { BackupFinding.Kind(rawValue: $0.id) })
    for sign in damage {
      // A missing Status.plist means the same as one without a state.
      switch sign {
      case .statusMissing: signs.insert(.stateMissing)
      case .finding(let finding): signs.insert(finding.kind)
      case .keychainChanged, .keychainSize, .classKeys: signs.insert(nil)
      }
    }
    self =
      switch signs {
      case []: .usable
      case [.decryptedCopy]: .decryptedCopy
      case [.stateMissing]: .unconfirmed
      case _ where signs.allSatisfy { $0.map(Self.changeFindings.contains) ?? false }: .changed
      case _: .damaged
      }
  }

  /// The findings about changes that lose nothing.
  private static let changeFindings: Set<BackupFinding.Kind> = [
    .falseClaim, .passwordDenied, .wrapsUnusual, .keybagMismatch, .sealBroken, .decryptedCopy,
  ]

  /// Whether the backup can be restored as it is.
  package var isUsable: Bool { self == .usable }

  /// Returns the verdict of a plan for a backup that cannot be restored as it is. This verdict is the first line of the
  /// plan, instead of `PlanVerdict`.
  ///
  /// - Parameter device: The name of the source device, or a substitute.
  /// - Returns: `nil` if the backup can be restored.
  package func verdict(device: String) -> String? {
    switch self {
    case .usable: nil
    case .unconfirmed: "The backup may be incomplete: make a new one while \(device) still works."
    case .changed: "The backup was changed: make a new one while \(device) still works."
    case .damaged: "The backup is damaged: make a new one while \(device) still works."
    case .decryptedCopy: "A decrypted copy cannot be restored: plan with the backup that it was made from."
    }
  }

  /// Returns a sentence about the items of a backup that cannot be restored as it is.
  ///
  /// - Parameters:
  ///   - count: The number of items that could be counted.
  ///   - moving: The number of these items that a new device could decrypt.
  ///   - target: The name of the new device.
  ///   - needsPassword: Whether items would move if the backup had a password.
  /// - Returns: `nil` if the backup can be restored.
  package func itemsSentence(count: Int, moving: Int, to target: String, needsPassword: Bool) -> String? {
    guard !isUsable else { return nil }
    guard count > 0 else { return "No keychain item could be read in it." }
    let missingClause = self == .decryptedCopy ? "" : "; others may be missing"
    let items = count == 1 ? "item" : "\(HumanReadable.grouped(count)) items"
    switch moving {
    case 0:
      let cause = needsPassword ? ", because it has no password" : ""
      return (count == 1 ? "The only item in it could not move" : "None of the \(items) in it could move")
        + " to \(target)\(cause)\(missingClause)."
    case count:
      return (count == 1 ? "The only item in it could move" : "All \(items) in it could move")
        + " to \(target)\(missingClause)."
    default:
      return "\(HumanReadable.grouped(moving)) of the \(items) in it could move to \(target)\(missingClause)."
    }
  }
}

extension BackupCondition {
  /// The maximum number of words in a verdict that names a device.
  static let maximumVerdictWords = 15
  /// The maximum number of Unicode scalars in a verdict that names a device.
  static let maximumVerdictLength = 100

  /// Returns the verdict with the first device name that keeps it short enough, or else with the last one.
  ///
  /// - Returns: `nil` if the backup can be restored.
  func verdict(deviceNames names: [String]) -> String? {
    let verdicts = names.compactMap { verdict(device: $0) }
    return verdicts.first(where: Self.isShort) ?? verdicts.last
  }

  /// Returns whether a verdict that names a device is short enough.
  static func isShort(_ verdict: String) -> Bool {
    verdict.split(separator: " ").count <= maximumVerdictWords && verdict.unicodeScalars.count <= maximumVerdictLength
  }
}
