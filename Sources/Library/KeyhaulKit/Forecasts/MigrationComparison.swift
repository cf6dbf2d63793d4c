package import Backups
import Basics
import KeychainCrypto
public import KeychainFormats
public import KeychainRules
package import VirtualDevice

/// The outcomes of the four restores for a keychain: with or without a password, to the same device or to another device.
///
/// Items that are already on a target are ignored.
public struct MigrationComparison: Sendable {
  /// An item with its outcome in all four restores.
  public struct Item: Sendable, Hashable {
    /// The index in the backup or in the device's plan.
    public let index: Int
    /// The item's names, which are unknown if it cannot be decrypted.
    package let identity: ItemDescriptor
    /// The protection class; `nil` if it is unknown.
    public let protection: ProtectionClass?
    /// The outcome in each scenario.
    package let allOutcomes: RestoreOutcomes
    /// Whether the item synchronizes; `nil` if it is encrypted.
    package let isSynchronizable: Bool?
    /// Whether the value has the form of a Secure Enclave key; `nil` if it is encrypted.
    package let containsSecureEnclaveKey: Bool?

    /// Creates an item.
    package init(
      index: Int, identity: ItemDescriptor, protection: ProtectionClass?, allOutcomes: RestoreOutcomes,
      isSynchronizable: Bool? = nil, containsSecureEnclaveKey: Bool? = nil
    ) {
      self.index = index
      self.identity = identity
      self.protection = protection
      self.allOutcomes = allOutcomes
      self.isSynchronizable = isSynchronizable
      self.containsSecureEnclaveKey = containsSecureEnclaveKey
    }

    init(_ decision: MigrationPlan.Decision, _ restoreOutcomes: RestoreOutcomes) {
      self.init(
        index: decision.index, identity: decision.identity, protection: decision.protection,
        allOutcomes: restoreOutcomes,
        isSynchronizable: decision.isSynchronizable, containsSecureEnclaveKey: decision.containsSecureEnclaveKey)
    }

    /// The assessments of the transfer methods to another device.
    package var transfers: TransferAssessments {
      TransferAssessments(restoreOutcomes: allOutcomes, protection: protection, isSynchronizable: isSynchronizable)
    }

    /// The outcome in one of the four restores.
    public subscript(scenario: RestoreScenario) -> RestoreOutcome { allOutcomes[scenario] ?? .unreadable(.malformed) }

    /// Returns the reason why the item may be unusable after one of the four restores; `nil` if there is none or the
    /// item does not arrive.
    package func warning(in scenario: RestoreScenario) -> ArrivalWarning? {
      guard self[scenario] == .arrives, containsSecureEnclaveKey == true else { return nil }
      return ArrivalWarning(forSecureEnclaveKeyOnSameDevice: scenario.onSameDevice)
    }

    /// Whether the item arrives on another device, with or without a password.
    package var canLeaveItsDevice: Bool {
      RestoreScenario.allCases.contains { !$0.onSameDevice && self[$0] == .arrives }
    }
  }

  /// The outcomes of all items in one of the four restores.
  public struct Counts: Sendable, Hashable {
    /// Items that arrive.
    package var arrives = 0
    /// Items that a rule or a key excludes.
    public var staysBehind = 0
    /// Items that are damaged in this backup.
    package var unreadable = 0
    /// Items that do not arrive, by reason.
    package var byReason: [Reason: Int] = [:]
    /// Items that arrive but may be unusable, by warning.
    package var byWarning: [ArrivalWarning: Int] = [:]
  }

  /// The items in the order of the backup or of the device's plan.
  public let items: [Item]
  /// The scenario of the current restore.
  package let current: RestoreScenario

  /// Creates a comparison from known outcomes.
  package init(_ items: [Item], current: RestoreScenario) {
    self.items = items
    self.current = current
  }

  /// The counts of one of the four restores.
  public subscript(scenario: RestoreScenario) -> Counts {
    items.reduce(into: Counts()) { counts, item in
      let restoreOutcome = item[scenario]
      switch restoreOutcome {
      case .arrives: counts.arrives += 1
      case .staysBehind: counts.staysBehind += 1
      case .unreadable: counts.unreadable += 1
      }
      if let reason = restoreOutcome.reason { counts.byReason[reason, default: 0] += 1 }
      if let warning = item.warning(in: scenario) { counts.byWarning[warning, default: 0] += 1 }
    }
  }

  /// The number of items with each verdict on a transfer method to another device.
  public subscript(method: TransferMethod) -> [TransferAssessment.Verdict: Int] {
    items.reduce(into: [:]) { counts, item in counts[item.transfers[method].verdict, default: 0] += 1 }
  }

  /// Compares the outcomes of a backup with the outcomes of other backups of the same items.
  ///
  /// The available keys decide which items can be decrypted. For items that these keys do not decrypt, and for the other
  /// scenarios, the protection class decides. An item that is damaged in this backup counts as damaged in all
  /// scenarios, because no other copy of the item is known.
  ///
  /// - Parameters:
  ///   - backup: The backup, decrypted with all available keys.
  ///   - plan: The plan of all its items for the target.
  package init(of backup: UnlockedBackup, _ plan: MigrationPlan) {
    items = plan.decisions.map { decision in
      var restoreOutcomes: RestoreOutcomes = [:]
      for scenario in RestoreScenario.allCases {
        restoreOutcomes[scenario] = Self.restoreOutcome(of: decision, in: scenario)
      }
      return Item(decision, restoreOutcomes)
    }
    current = RestoreScenario(hasPassword: backup.hasPassword, onSameDevice: plan.isSameDevice == true)
  }

  /// Returns the outcome by class if the decision depends on the password or the device key; otherwise, the decision's own
  /// outcome.
  static func restoreOutcome(of decision: MigrationPlan.Decision, in scenario: RestoreScenario) -> RestoreOutcome {
    switch decision.outcome {
    case .unreadable(let reason): .unreadable(reason)
    case .migrates, .staysBehind(.deviceBound), .staysBehind(.backupNotEncrypted):
      decision.protection?.restoreOutcome(in: scenario) ?? .unreadable(.malformed)
    case .staysBehind(let reason): .staysBehind(reason)
    }
  }

  /// Compares the outcomes of backups of a device. Each of the four restores is simulated in memory with real keys.
  ///
  /// - Parameters:
  ///   - source: The device, unlocked.
  ///   - target: The target device. If it is the source itself, a simulated device replaces it in the two scenarios
  ///     with another device.
  ///   - hasPassword: Whether the planned backup has a password.
  /// - Throws: The errors of a backup, mainly of category `locked`.
  package init(
    of source: DeviceSession, onto target: DeviceSession, hasPassword: Bool
  ) throws(KeyhaulError) {
    let simulatedBackup = try SimulatedBackup(of: source, hasPassword: hasPassword)
    try self.init(of: source, onto: target, using: simulatedBackup)
  }

  /// Compares the outcomes like the initializer above, with a backup that was already simulated.
  package init(
    of source: DeviceSession, onto target: DeviceSession, using simulatedBackup: SimulatedBackup
  ) throws(KeyhaulError) {
    let sourceKey = try source.deviceKey()
    let isSourceDevice = source.device.directory == target.device.directory
    let otherDeviceKey = isSourceDevice ? try Self.keyOfUnknownDevice() : try target.deviceKey()
    var restoreOutcomes: [RestoreOutcomes] = []
    var decisions: [MigrationPlan.Decision] = []
    func addOutcomes(of simulatedBackup: SimulatedBackup) throws(KeyhaulError) {
      for onSameDevice in [true, false] {
        let plan = try Restorer.plan(
          simulatedBackup, ontoEmpty: onSameDevice ? sourceKey : otherDeviceKey,
          targetSyncs: (onSameDevice ? source : target).record.isSyncing)
        let scenario = RestoreScenario(hasPassword: simulatedBackup.hasPassword, onSameDevice: onSameDevice)
        if restoreOutcomes.isEmpty { restoreOutcomes = Array(repeating: [:], count: plan.decisions.count) }
        // All four plans have the same items in the same order.
        for (position, decision) in plan.decisions.enumerated() {
          restoreOutcomes[position][scenario] = RestoreOutcome(decision.outcome)
        }
        // The decisions provide the items' names and classes. They are always from the last plan without a password, so
        // the result does not depend on which backup is simulated first.
        if decisions.isEmpty || !simulatedBackup.hasPassword { decisions = plan.decisions }
      }
    }
    try addOutcomes(of: simulatedBackup)
    try addOutcomes(
      of: try simulatedBackup.copy(withPassword: !simulatedBackup.hasPassword, deviceKey: sourceKey))
    items = zip(decisions, restoreOutcomes).map(Item.init)
    current = RestoreScenario(hasPassword: simulatedBackup.hasPassword, onSameDevice: isSourceDevice)
  }

  /// Returns a random device key, which belongs to no device.
  static func keyOfUnknownDevice() throws(KeyhaulError) -> DeviceKey {
    try translatingErrors { () throws(DataProtectionError) in try HardwareUID(from: SystemRandomSource()).deviceKey() }
  }
}

extension MigrationComparison {
  /// The numbers for the advice at the end of a report. `sentence` returns the text.
  package struct Advice: Sendable, Hashable {
    /// The compared items: the items of the backup, or of the device.
    package let total: Int
    /// Items that arrive in the current restore.
    package let arrivesNow: Int
    /// Items that would arrive in addition if the backup had a password; 0 if it has one.
    package let gainedByPassword: Int
    /// Items that arrive only because the current backup has a password; 0 if it has none.
    package let lostWithoutPassword: Int
    /// Items that arrive only on the source device.
    package let sameDeviceOnly: Int
    /// Items that no backup moves to the current target.
    package let neverToTarget: Int
    /// Items that are damaged in this backup.
    package let damaged: Int
  }

  /// The advice from the outcomes of all four restores.
  package var advice: Advice {
    let withPassword = RestoreScenario(hasPassword: true, onSameDevice: current.onSameDevice)
    let withoutPassword = RestoreScenario(hasPassword: false, onSameDevice: current.onSameDevice)
    func canReachTarget(_ item: Item) -> Bool { item[withPassword] == .arrives || item[withoutPassword] == .arrives }
    func isDamaged(_ item: Item) -> Bool { if case .unreadable = item[current] { true } else { false } }
    return Advice(
      total: items.count, arrivesNow: items.count { $0[current] == .arrives },
      gainedByPassword: items.count { $0[withPassword] == .arrives && $0[current] != .arrives },
      lostWithoutPassword: items.count { $0[current] == .arrives && $0[withoutPassword] != .arrives },
      sameDeviceOnly: items.count { item in
        !item.canLeaveItsDevice && RestoreScenario.allCases.contains { $0.onSameDevice && item[$0] == .arrives }
      },
      neverToTarget: items.count { !canReachTarget($0) && !isDamaged($0) }, damaged: items.count(where: isDamaged))
  }
}

extension MigrationComparison.Advice {
  /// Returns a sentence such as "with a password, 13 more items would move; 3 stay behind in any case".
  ///
  /// If all items arrive, the sentence has their number instead of "all items", because a backup does not contain all
  /// items of its device.
  package func sentence(for scenario: RestoreScenario) -> String {
    var parts: [String] = []
    switch (scenario.hasPassword, scenario.onSameDevice) {
    case (false, false) where gainedByPassword > 0:
      parts.append("with a password, \(HumanReadable.count(gainedByPassword, "more item")) would move")
    case (false, false): parts.append("with a password, no more items would move")
    case (true, false): parts.append("with the password, \(arrivals) move, and no more can")
    case (_, true): parts.append("\(arrivals) \(arrivesNow == 1 ? "is" : "are") restored to the source device")
    }
    switch neverToTarget {
    case 0: parts.append("none of these stays behind")
    default:
      parts.append(
        "\(HumanReadable.grouped(neverToTarget)) \(neverToTarget == 1 ? "stays" : "stay") behind in any case")
    }
    if !scenario.onSameDevice, sameDeviceOnly > 0 {
      let items =
        sameDeviceOnly == neverToTarget
        ? (neverToTarget == 1 ? "it" : "them") : "\(HumanReadable.grouped(sameDeviceOnly)) of them"
      parts.append("only the source device can restore \(items)")
    }
    if damaged > 0 { parts.append("\(HumanReadable.grouped(damaged)) cannot be read in this copy") }
    return parts.joined(separator: "; ")
  }

  /// The arrivals, such as "14 of 18 items".
  private var arrivals: String { "\(HumanReadable.grouped(arrivesNow)) of \(HumanReadable.count(total, "item"))" }
}
