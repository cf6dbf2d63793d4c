package import Backups
import Basics
import KeychainCrypto
public import KeychainFormats
public import KeychainRules
package import VirtualDevice

/// What the four ways of restoring would bring of someone's own items: the table {password, none} × {same device, other
/// device}, filled in.
///
/// Counts what arrives; what is on a target already has no part in it.
public struct MigrationComparison: Sendable {
  /// One item, with what becomes of it in all four restores.
  public struct Item: Sendable, Hashable {
    /// Its position in the archive or in the device's plan.
    public let index: Int
    /// The names that it is known by; sealed where it does not open.
    package let identity: ItemDescriptor
    /// The class that protects it; `nil` if the blob doesn't say.
    public let protection: ProtectionClass?
    /// One for each setting.
    package let allOutcomes: RestoreOutcomes
    /// Whether it is marked to synchronize; `nil` if that is sealed.
    package let isSynchronizable: Bool?
    /// Whether its value has the form of a key of the Secure Enclave; `nil` if that is sealed.
    package let containsSecureEnclaveKey: Bool?

    /// Creates an item of which all is known.
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

    /// On which ways it comes to another device.
    package var ways: TransferAssessments {
      TransferAssessments(restoreOutcomes: allOutcomes, protection: protection, isSynchronizable: isSynchronizable)
    }

    /// What becomes of the item in one of the four.
    public subscript(scenario: RestoreScenario) -> RestoreOutcome { allOutcomes[scenario] ?? .unreadable(.malformed) }

    /// What is known against its use where one of the four brings it; `nil` if it does not arrive.
    package func warning(in scenario: RestoreScenario) -> ArrivalWarning? {
      guard self[scenario] == .arrives, containsSecureEnclaveKey == true else { return nil }
      return ArrivalWarning(ofEnclaveKeyOnSameDevice: scenario.onSameDevice)
    }

    /// Whether it arrives on another device in one of the two ways there are.
    package var canLeaveItsDevice: Bool {
      RestoreScenario.allCases.contains { !$0.onSameDevice && self[$0] == .arrives }
    }
  }

  /// What becomes of all items in one of the four restores.
  public struct Counts: Sendable, Hashable {
    /// Items that arrive.
    package var arrives = 0
    /// Items that a rule or a key leaves out.
    public var staysBehind = 0
    /// Items that are damaged in this copy.
    package var unreadable = 0
    /// What does not arrive, by its reason.
    package var byReason: [Reason: Int] = [:]
    /// What arrives and may be of no use there, by the warning.
    package var byWarning: [ArrivalWarning: Int] = [:]
  }

  /// The items in the order of the archive or of the device's plan.
  public let items: [Item]
  /// Which of the four the restore at hand is.
  package let current: RestoreScenario

  /// Creates a comparison of what is known already.
  package init(_ items: [Item], current: RestoreScenario) {
    self.items = items
    self.current = current
  }

  /// The items counted for one of the four restores.
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

  /// The items counted for one of the ways to another device.
  public subscript(way: TransferMethod) -> [TransferAssessment.Verdict: Int] {
    items.reduce(into: [:]) { counts, item in counts[item.ways[way].verdict, default: 0] += 1 }
  }

  /// What an archive gives, and what another backup of the same items would.
  ///
  /// The keys that are available decide what opens; of what they do not open, and of the settings that this archive is
  /// not, the class decides. An item that is damaged here counts as damaged throughout: whether another copy has it is
  /// not known.
  ///
  /// - Parameters:
  ///   - archive: The backup, opened with every key at hand.
  ///   - plan: Of all items of the archive, for the device that they should go to.
  package init(of archive: UnlockedBackup, _ plan: MigrationPlan) {
    items = plan.decisions.map { decision in
      var restoreOutcomes: RestoreOutcomes = [:]
      for scenario in RestoreScenario.allCases {
        restoreOutcomes[scenario] = Self.restoreOutcome(of: decision, in: scenario)
      }
      return Item(decision, restoreOutcomes)
    }
    current = RestoreScenario(hasPassword: archive.hasPassword, onSameDevice: plan.isSameDevice == true)
  }

  /// By class, where a key or the hardware decides.
  static func restoreOutcome(of decision: MigrationPlan.Decision, in scenario: RestoreScenario) -> RestoreOutcome {
    switch decision.outcome {
    case .unreadable(let reason): .unreadable(reason)
    case .migrates, .staysBehind(.deviceBound), .staysBehind(.backupNotEncrypted):
      decision.protection?.restoreOutcome(in: scenario) ?? .unreadable(.malformed)
    case .staysBehind(let reason): .staysBehind(reason)
    }
  }

  /// What backups of a device made now would give: each of the four is tried, with real keys and in memory.
  ///
  /// - Parameters:
  ///   - source: The device whose items are asked about, unlocked.
  ///   - target: The device that the items should go to; where it is the source itself, another one is made up for the
  ///     two settings that need it.
  ///   - hasPassword: Of the backup that is planned.
  /// - Throws: As a backup does, category `locked` foremost.
  package init(
    of source: DeviceSession, onto target: DeviceSession, hasPassword: Bool
  ) throws(KeyhaulError) {
    let simulatedBackup = try SimulatedBackup(of: source, hasPassword: hasPassword)
    try self.init(of: source, onto: target, knowing: simulatedBackup)
  }

  /// The same where one of the two backups that are compared was thought of already: the device is read once less.
  package init(
    of source: DeviceSession, onto target: DeviceSession, knowing simulatedBackup: SimulatedBackup
  ) throws(KeyhaulError) {
    let sameKey = try source.deviceKey()
    let isItself = source.device.directory == target.device.directory
    let otherKey = isItself ? try Self.keyOfUnknownDevice() : try Self.key(of: target)
    var restoreOutcomes: [RestoreOutcomes] = []
    var decisions: [MigrationPlan.Decision] = []
    func enter(_ simulatedBackup: SimulatedBackup) throws(KeyhaulError) {
      for onSameDevice in [true, false] {
        let plan = try Restorer.plan(
          simulatedBackup, ontoEmpty: onSameDevice ? sameKey : otherKey,
          targetSyncs: (onSameDevice ? source : target).record.isSyncing)
        let scenario = RestoreScenario(hasPassword: simulatedBackup.hasPassword, onSameDevice: onSameDevice)
        if restoreOutcomes.isEmpty { restoreOutcomes = Array(repeating: [:], count: plan.decisions.count) }
        // All four are about the same items, in the same order.
        for (place, decision) in plan.decisions.enumerated() {
          restoreOutcomes[place][scenario] = RestoreOutcome(decision.outcome)
        }
        // One of the four has the items' names and classes for all.
        if decisions.isEmpty || !simulatedBackup.hasPassword { decisions = plan.decisions }
      }
    }
    try enter(simulatedBackup)
    try enter(try simulatedBackup.copy(withPassword: !simulatedBackup.hasPassword, deviceKey: sameKey))
    items = zip(decisions, restoreOutcomes).map(Item.init)
    current = RestoreScenario(hasPassword: simulatedBackup.hasPassword, onSameDevice: isItself)
  }

  private static func key(of device: DeviceSession) throws(KeyhaulError) -> DeviceKey {
    try device.deviceKey()
  }

  /// A hardware key that is nobody's.
  static func keyOfUnknownDevice() throws(KeyhaulError) -> DeviceKey {
    try translatingErrors { () throws(DataProtectionError) in try HardwareUID(from: SystemRandomSource()).deviceKey() }
  }
}

extension MigrationComparison {
  /// What to do with the comparison, in numbers. The sentence is `sentence`.
  package struct Advice: Sendable, Hashable {
    /// Items that are compared: those of the backup, or those of the device.
    package let total: Int
    /// Items that arrive in the restore at hand.
    package let arrivesNow: Int
    /// Items that a password would bring besides, to the same target; none where the backup at hand has one.
    package let gainedByPassword: Int
    /// Items that arrive because the backup at hand has a password, and would not without; none where it has none.
    package let broughtByPassword: Int
    /// Items that arrive on the device that made the backup and on no other.
    package let sameDeviceOnly: Int
    /// Items that no backup brings to the target at hand.
    package let neverToTarget: Int
    /// Items that are damaged in this copy.
    package let damaged: Int
  }

  /// What the four restores say together, counted for the sentence that a report ends with.
  package var advice: Advice {
    let withPassword = RestoreScenario(hasPassword: true, onSameDevice: current.onSameDevice)
    let without = RestoreScenario(hasPassword: false, onSameDevice: current.onSameDevice)
    func reaches(_ item: Item) -> Bool { item[withPassword] == .arrives || item[without] == .arrives }
    func isDamaged(_ item: Item) -> Bool { if case .unreadable = item[current] { true } else { false } }
    return Advice(
      total: items.count, arrivesNow: items.count { $0[current] == .arrives },
      gainedByPassword: items.count { $0[withPassword] == .arrives && $0[current] != .arrives },
      broughtByPassword: items.count { $0[current] == .arrives && $0[without] != .arrives },
      sameDeviceOnly: items.count { item in
        !item.canLeaveItsDevice && RestoreScenario.allCases.contains { $0.onSameDevice && item[$0] == .arrives }
      },
      neverToTarget: items.count { !reaches($0) && !isDamaged($0) }, damaged: items.count(where: isDamaged))
  }
}

extension MigrationComparison.Advice {
  /// "with a password, 13 more items would move; 3 stay behind in any case"
  ///
  /// Says of how many items it speaks wherever it says that all of them arrive: a backup does not hold all that its
  /// device has.
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
      let them =
        sameDeviceOnly == neverToTarget
        ? (neverToTarget == 1 ? "it" : "them") : "\(HumanReadable.grouped(sameDeviceOnly)) of them"
      parts.append("only the source device can restore \(them)")
    }
    if damaged > 0 { parts.append("\(HumanReadable.grouped(damaged)) cannot be read in this copy") }
    return parts.joined(separator: "; ")
  }

  /// "14 of 18 items"
  private var arrivals: String { "\(HumanReadable.grouped(arrivesNow)) of \(HumanReadable.count(total, "item"))" }
}
