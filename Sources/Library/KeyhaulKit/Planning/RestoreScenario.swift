import Backups
package import KeychainFormats
public import KeychainRules

/// A kind of restore, one of four: from a backup with or without a password, to the source device or to another
/// device.
///
/// Choose one of `allCases` by its properties: `RestoreScenario.allCases.first { $0.hasPassword && !$0.onSameDevice }`.
public struct RestoreScenario: Sendable, Hashable, CaseIterable {
  /// Whether the backup has a password.
  public let hasPassword: Bool
  /// Whether the target is the source device.
  public let onSameDevice: Bool

  /// Creates one of the four scenarios.
  package init(hasPassword: Bool, onSameDevice: Bool) {
    self.hasPassword = hasPassword
    self.onSameDevice = onSameDevice
  }

  /// The four scenarios, first the two with a password.
  public static let allCases = [
    RestoreScenario(hasPassword: true, onSameDevice: true), RestoreScenario(hasPassword: true, onSameDevice: false),
    RestoreScenario(hasPassword: false, onSameDevice: true), RestoreScenario(hasPassword: false, onSameDevice: false),
  ]
}

/// The outcome for one item in one of the four restores, regardless of the target's own items.
public enum RestoreOutcome: Sendable, Hashable {
  /// The item is on the target afterwards.
  case arrives
  /// The item is undamaged, but a rule or a key excludes it.
  case staysBehind(Reason)
  /// The item is damaged in this backup.
  case unreadable(Reason)

  init(_ outcome: MigrationPlan.Outcome) {
    switch outcome {
    case .migrates: self = .arrives
    case .staysBehind(let reason): self = .staysBehind(reason)
    case .unreadable(let reason): self = .unreadable(reason)
    }
  }

  /// The reason why the item does not arrive; `nil` if it arrives.
  public var reason: Reason? {
    switch self {
    case .arrives: nil
    case .staysBehind(let reason), .unreadable(let reason): reason
    }
  }
}

extension ProtectionClass {
  /// Returns the outcome for an undamaged item of this class in a backup, according to how class keys are wrapped.
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
  /// Creates the assessments of an item from its outcomes in the four restores.
  ///
  /// - Parameters:
  ///   - restoreOutcomes: The outcomes in the four restores. A missing one means damage.
  ///   - protection: The protection class; `nil` if it is unknown.
  ///   - isSynchronizable: Whether the item synchronizes; `nil` if it is encrypted.
  init(restoreOutcomes: RestoreOutcomes, protection: ProtectionClass?, isSynchronizable: Bool?) {
    func reason(hasPassword: Bool) -> Reason? {
      (restoreOutcomes[RestoreScenario(hasPassword: hasPassword, onSameDevice: false)] ?? .unreadable(.malformed))
        .reason
    }
    self.init(
      withPassword: reason(hasPassword: true), withoutPassword: reason(hasPassword: false), protection: protection,
      isSynchronizable: isSynchronizable)
  }
}

/// The known outcomes for one item in the four restores.
package struct RestoreOutcomes: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  private var withPassword: Pair = Pair()
  private var withoutPassword: Pair = Pair()

  private struct Pair: Sendable, Hashable {
    var onSameDevice: RestoreOutcome?
    var onOtherDevice: RestoreOutcome?

    var count: Int { (onSameDevice == nil ? 0 : 1) + (onOtherDevice == nil ? 0 : 1) }
  }

  /// Creates an empty value.
  package init() {}

  /// Creates a value from a literal. If a restore occurs twice, the last one counts.
  package init(dictionaryLiteral elements: (RestoreScenario, RestoreOutcome)...) {
    for (scenario, restoreOutcome) in elements { self[scenario] = restoreOutcome }
  }

  /// Creates a value with the same outcome in all four restores.
  init(all restoreOutcome: RestoreOutcome) {
    for scenario in RestoreScenario.allCases { self[scenario] = restoreOutcome }
  }

  /// The outcome in one of the four restores; `nil` if it is unknown.
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

  /// The number of known outcomes.
  package var count: Int { withPassword.count + withoutPassword.count }
  /// Whether no outcome is known.
  package var isEmpty: Bool { count == 0 }
}
