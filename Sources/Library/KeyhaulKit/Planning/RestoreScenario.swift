import Backups
package import KeychainFormats
public import KeychainRules

/// One of the four ways to bring a keychain back: from a backup with or without a password, to the device that made it or
/// to another.
public struct RestoreScenario: Sendable, Hashable, CaseIterable {
  /// Whether the backup has a password.
  package let hasPassword: Bool
  /// Whether the target is the device that made the backup.
  package let onSameDevice: Bool

  /// Creates one of the four.
  package init(hasPassword: Bool, onSameDevice: Bool) {
    self.hasPassword = hasPassword
    self.onSameDevice = onSameDevice
  }

  /// The four, those with a password first.
  public static let allCases = [
    RestoreScenario(hasPassword: true, onSameDevice: true), RestoreScenario(hasPassword: true, onSameDevice: false),
    RestoreScenario(hasPassword: false, onSameDevice: true), RestoreScenario(hasPassword: false, onSameDevice: false),
  ]
}

/// What becomes of one item in one of the four restores, whatever is on the target.
public enum RestoreOutcome: Sendable, Hashable {
  /// It is on the target afterwards.
  case arrives
  /// It is sound, and a rule or a key leaves it out.
  case staysBehind(Reason)
  /// It is damaged in this copy.
  case unreadable(Reason)

  init(_ outcome: MigrationPlan.Outcome) {
    switch outcome {
    case .migrates: self = .arrives
    case .staysBehind(let reason): self = .staysBehind(reason)
    case .unreadable(let reason): self = .unreadable(reason)
    }
  }

  /// Why it does not arrive; `nil` if it does.
  public var reason: Reason? {
    switch self {
    case .arrives: nil
    case .staysBehind(let reason), .unreadable(let reason): reason
    }
  }
}

extension ProtectionClass {
  /// What becomes of a sound item of this class that is in the backup: the wraps of the class keys as a table.
  ///
  /// Source: Apple Platform Security, "Keybags for Data Protection" (backup keybag).
  package func restoreOutcome(in scenario: RestoreScenario) -> RestoreOutcome {
    if self == .whenPasscodeSetThisDeviceOnly { return .staysBehind(.passcodeOnly) }
    if scenario.onSameDevice { return .arrives }
    if isThisDeviceOnly { return .staysBehind(.deviceBound) }
    return scenario.hasPassword ? .arrives : .staysBehind(.backupNotEncrypted)
  }
}

extension TransferAssessments {
  /// The ways of an item of which the four restores are known.
  ///
  /// - Parameters:
  ///   - restoreOutcomes: What becomes of it in the four restores; one that is not there is damage.
  ///   - protection: Its class; `nil` if nothing says it.
  ///   - isSynchronizable: Whether it is marked to synchronize; `nil` if that is sealed.
  init(restoreOutcomes: RestoreOutcomes, protection: ProtectionClass?, isSynchronizable: Bool?) {
    func reason(_ hasPassword: Bool) -> Reason? {
      (restoreOutcomes[RestoreScenario(hasPassword: hasPassword, onSameDevice: false)] ?? .unreadable(.malformed))
        .reason
    }
    self.init(
      withPassword: reason(true), withoutPassword: reason(false), protection: protection,
      isSynchronizable: isSynchronizable)
  }
}

/// What becomes of one item in each of the four restores, as far as that is known.
package struct RestoreOutcomes: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  private var withPassword: Pair = Pair()
  private var withoutPassword: Pair = Pair()

  private struct Pair: Sendable, Hashable {
    var onSameDevice: RestoreOutcome?
    var onOtherDevice: RestoreOutcome?

    var count: Int { (onSameDevice == nil ? 0 : 1) + (onOtherDevice == nil ? 0 : 1) }
  }

  /// Creates prospects of which nothing is known.
  package init() {}

  /// Creates prospects of a literal; where a restore occurs twice the last wins.
  package init(dictionaryLiteral elements: (RestoreScenario, RestoreOutcome)...) {
    for (scenario, restoreOutcome) in elements { self[scenario] = restoreOutcome }
  }

  /// The same in all four.
  init(all restoreOutcome: RestoreOutcome) {
    for scenario in RestoreScenario.allCases { self[scenario] = restoreOutcome }
  }

  /// In one of the four; `nil` if that is not known.
  package subscript(scenario: RestoreScenario) -> RestoreOutcome? {
    get {
      let pair = scenario.hasPassword ? withPassword : withoutPassword
      return scenario.onSameDevice ? pair.onSameDevice : pair.onOtherDevice
    }
    set {
      switch (scenario.hasPassword, scenario.onSameDevice) {
      case (true, true): withPassword.onSameDevice = newValue
      case (true, false): withPassword.onOtherDevice = newValue
      case (false, true): withoutPassword.onSameDevice = newValue
      case (false, false): withoutPassword.onOtherDevice = newValue
      }
    }
  }

  /// Of how many of the four it is known.
  package var count: Int { withPassword.count + withoutPassword.count }
  /// Whether it is known of none.
  package var isEmpty: Bool { count == 0 }
}
