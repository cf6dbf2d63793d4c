package import Backups
import Basics
package import KeychainFormats
package import KeychainRules
package import Keychains
package import VirtualDevice

/// Finds the items that a question means, in an archive and on the devices that are available, and puts together what is
/// known of each.
package struct ItemExplainer {
  /// Which items are meant.
  package struct Selection {
    let query: ItemQuery
    let index: Int?
    private let matches: (KeychainItem) -> Bool

    /// Creates what is asked about.
    ///
    /// - Parameters:
    ///   - query: For the rows of a device.
    ///   - index: The item at this place in the backup; `nil` for any.
    ///   - matches: Whether an item that no database holds is meant; one of which only the names are known is asked about
    ///     as an item of these.
    package init(_ query: ItemQuery, index: Int?, matches: @escaping (KeychainItem) -> Bool) {
      self.query = query
      self.index = index
      self.matches = matches
    }

    /// Refuses a place that a backup with so many items does not have.
    func check(count: Int, of name: String) throws(KeyhaulError) {
      guard let index, !(0..<count).contains(index) else { return }
      throw .noSuchItem(index, in: name, count: count)
    }

    func contains(_ item: KeychainItem, index: Int) -> Bool {
      if let selection = self.index, selection != index { return false }
      return matches(item)
    }
  }

  let selection: Selection

  /// Creates a finder of the stories of these items.
  package init(_ selection: Selection) { self.selection = selection }

  // MARK: An archive

  /// The items of an archive that are meant; where there is none, those of its maker and of the target.
  ///
  /// - Parameters:
  ///   - archive: The archive, opened with every key at hand.
  ///   - name: What messages call the archive.
  ///   - sourceDevice: The device that says it made the archive, where it is available: asked for items that are not in it.
  ///   - target: The device that the items should go to, and the plan of a restore onto it.
  /// - Throws: `.noSuchItem` for a place that it does not have; what keeps a device from being read, with its name.
  package func explanations(
    in archive: UnlockedBackup, named name: String, sourceDevice: DeviceSession?,
    onto target: (device: DeviceSession, plan: MigrationPlan)?
  ) throws(KeyhaulError) -> [ItemExplanation] {
    try selection.check(count: archive.items.count, of: name)
    let opened = MigrationPlanner.plan(
      archive.items, onto: [], policy: .merge,
      context: RestoreContext(backupHasPassword: archive.hasPassword)
    ).naming(archive.encryptedItemSummaries)
    let comparison = MigrationComparison(of: archive, opened)
    var explanations: [ItemExplanation] = []
    for (position, item) in archive.items.enumerated() {
      let decision = opened.decisions[position]
      let isSelected =
        item.item.map { selection.contains($0, index: item.index) }
        ?? selection.contains(KeychainItem(named: decision.identity, item.protection), index: item.index)
      guard isSelected else { continue }
      explanations.append(
        ItemExplanation(
          location: .archive(index: item.index), identity: decision.identity, protection: item.protection,
          restoreOutcomes: comparison.items[position].allOutcomes, decision: decision,
          onTarget: target?.plan.decisions[position], item: item.item))
    }
    guard explanations.isEmpty, selection.index == nil else { return explanations }
    let claimed = archive.archive.device.identifier
    if let sourceDevice { explanations += try missing(from: sourceDevice) }
    if let (device, plan) = target {
      explanations +=
        device.record.udid == claimed ? try missing(from: device) : try explanationsOnTargetOnly(device, plan)
    }
    return explanations
  }

  /// Items of the device that made the archive which are not in it.
  private func missing(from sourceDevice: DeviceSession) throws(KeyhaulError) -> [ItemExplanation] {
    let rows = try rows(on: sourceDevice, tombstones: .included)
    guard !rows.isEmpty else { return [] }
    var rules: [RowReference: Reason] = [:]
    let simulatedBackup = try simulatedBackup(of: sourceDevice)
    for left in simulatedBackup.leftOut + simulatedBackup.tombstones { rules[left.row] = left.outcome.reason }
    return rows.map { row in
      let rule = rules[row.summary.reference]
      let protection = row.protection
      var restoreOutcomes: RestoreOutcomes = [:]
      for scenario in RestoreScenario.allCases {
        restoreOutcomes[scenario] = rule.map(RestoreOutcome.staysBehind) ?? protection?.restoreOutcome(in: scenario)
      }
      return ItemExplanation(
        location: .missing(from: sourceDevice.name, rule: rule), identity: row.identity, protection: protection,
        restoreOutcomes: restoreOutcomes, decision: nil, onTarget: nil, item: row.item)
    }
  }

  /// The target's own items, of which the archive holds nothing.
  private func explanationsOnTargetOnly(_ target: DeviceSession, _ plan: MigrationPlan) throws(KeyhaulError)
    -> [ItemExplanation]
  {
    try rows(on: target).map { row in
      let isRemoved = plan.removed.contains(row.identity)
      return ItemExplanation(
        location: .targetOnly(isRemoved: isRemoved), identity: row.identity, protection: row.protection,
        restoreOutcomes: [:],
        decision: nil, onTarget: nil, item: row.item)
    }
  }

  // MARK: A device

  /// The items of a device that are meant, as a backup made of it now would hold them.
  ///
  /// - Parameters:
  ///   - source: The device, held for reading.
  ///   - target: The device that they should go to.
  ///   - policy: What becomes of items that are there already.
  /// - Throws: As for an archive.
  package func explanations(
    on source: DeviceSession, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> [ItemExplanation] {
    let rows = try rows(on: source, tombstones: .included)
    if rows.isEmpty, selection.index == nil { return [] }
    let simulatedBackup = try simulatedBackup(of: source)
    try selection.check(count: simulatedBackup.exported.count + simulatedBackup.leftOut.count, of: source.name)
    let comparison: MigrationComparison
    var plan: MigrationPlan?
    do throws(KeyhaulError) {
      comparison = try MigrationComparison(of: source, onto: target ?? source, knowing: simulatedBackup)
      if let target { plan = try Restorer.plan(simulatedBackup, onto: target, policy: policy) }
    } catch {
      throw error.with(subject: source.name)
    }
    var positions: [RowReference: Int] = [:]
    for (position, row) in (simulatedBackup.exported.map(\.row) + simulatedBackup.leftOut.map(\.row)).enumerated() {
      positions[row] = position
    }
    let marks = Set(simulatedBackup.tombstones.map(\.row))
    return rows.compactMap { row in
      if selection.index == nil, marks.contains(row.summary.reference) { return Self.explanation(ofDeleted: row) }
      guard let position = positions[row.summary.reference],
        selection.index == nil || selection.index == position
      else { return nil }
      let left =
        position < simulatedBackup.exported.count
        ? nil : simulatedBackup.leftOut[position - simulatedBackup.exported.count]
      return ItemExplanation(
        location: .device(index: position), identity: row.identity, protection: row.protection,
        restoreOutcomes: comparison.items[position].allOutcomes,
        decision: left.map {
          MigrationPlan.Decision(
            index: position, identity: row.identity, protection: row.protection, outcome: $0.outcome, detail: $0.detail)
        },
        onTarget: plan?.decisions[position], item: row.item,
        containsSecureEnclaveKey: left?.containsSecureEnclaveKey
          ?? simulatedBackup.containsSecureEnclaveKey(at: position))
    }
  }

  private static func explanation(ofDeleted row: KeychainRow) -> ItemExplanation {
    explanation(ofDeleted: row.item, row.identity, row.protection)
  }

  static func explanation(
    ofDeleted item: KeychainItem?, _ identity: ItemDescriptor, _ protection: ProtectionClass?
  ) -> ItemExplanation {
    ItemExplanation(
      location: .deleted, identity: identity, protection: protection,
      restoreOutcomes: RestoreOutcomes(all: .staysBehind(.deleted)),
      decision: nil, onTarget: nil, item: item)
  }

  private func simulatedBackup(of device: DeviceSession) throws(KeyhaulError) -> SimulatedBackup {
    do throws(KeyhaulError) {
      return try SimulatedBackup(of: device, hasPassword: true)
    } catch {
      throw error.with(subject: device.name)
    }
  }

  private func rows(
    on device: DeviceSession, tombstones: ItemQuery.Tombstones = .excluded
  ) throws(KeyhaulError) -> [KeychainRow] {
    var query = selection.query
    query.tombstones = tombstones
    do throws(KeyhaulError) {
      return try device.rows(matching: query)
    } catch {
      throw error.with(subject: device.name)
    }
  }
}

extension ExportReport.Item {
  /// The row that holds it.
  fileprivate var row: RowReference { RowReference(kind: identity.kind, rowID: rowID) }
}

extension MigrationPlan.Decision {
  /// The row of an item that stays on its device.
  fileprivate var row: RowReference { RowReference(kind: identity.kind, rowID: Int64(index)) }
}

extension KeychainRow {
  /// What a person knows it by. Hostile.
  fileprivate var identity: ItemDescriptor {
    item.map(ItemDescriptor.init) ?? ItemDescriptor(undecryptable: summary.kind, accessGroup: summary.accessGroup)
  }

  fileprivate var protection: ProtectionClass? { item.map(\.protection) ?? summary.protection }
}

/// Everything there is to say of one item: who may read it when, what the four restores do with it, what happened to it
/// in this archive, and what it does on one target.
package struct ItemExplanation: Sendable {
  /// Where the item was found.
  package enum Location: Sendable, Hashable {
    /// In the archive, at this position.
    case archive(index: Int)
    /// On the device that is asked about, or in the dump or the database of one, at this position in a plan of it: what a
    /// backup made now would do with it.
    case device(index: Int)
    /// There as well, as the mark of a deleted item: no backup takes it along, and no plan numbers it.
    case deleted
    /// On a device and not in the archive, although the device made it; the rule that left it out, or `nil` if none
    /// did: it was not there yet.
    case missing(from: String, rule: Reason?)
    /// On the target alone, which has not made the archive: its own item.
    case targetOnly(isRemoved: Bool)
  }

  /// Where the item was found.
  package let location: Location
  /// The names that it is known by.
  package let identity: ItemDescriptor
  /// The class that protects it; `nil` if nothing says it.
  package let protection: ProtectionClass?
  /// One for each of the four restores; empty where nothing is known of them.
  package let restoreOutcomes: RestoreOutcomes
  /// What becomes of it in this archive or backup: whether it opens, and if not, why.
  package let decision: MigrationPlan.Decision?
  /// What it does on the target that was asked about.
  package let onTarget: MigrationPlan.Decision?
  /// Whether it is marked to synchronize; `nil` if that is sealed.
  package let isSynchronizable: Bool?
  /// Whether the item's value has the form of a Secure Enclave key; `nil` if it has no value or could not be opened.
  package let containsSecureEnclaveKey: Bool?

  /// Creates a story of one item.
  ///
  /// - Parameters:
  ///   - place: Where the item was found.
  ///   - identity: The names that it is known by.
  ///   - protection: The class that protects it.
  ///   - restoreOutcomes: What becomes of it in each of the four restores.
  ///   - decision: What becomes of it in this archive or backup.
  ///   - onTarget: What it does on the target.
  ///   - item: The item in clear, as far as it opens, with or without its value.
  ///   - containsSecureEnclaveKey: Whether its value has the form of a key of the Secure Enclave, where that is known apart.
  package init(
    location: Location, identity: ItemDescriptor, protection: ProtectionClass?, restoreOutcomes: RestoreOutcomes,
    decision: MigrationPlan.Decision?, onTarget: MigrationPlan.Decision?, item: KeychainItem? = nil,
    containsSecureEnclaveKey: Bool? = nil
  ) {
    self.location = location
    self.identity = identity
    self.protection = protection
    self.restoreOutcomes = restoreOutcomes
    self.decision = decision
    self.onTarget = onTarget
    isSynchronizable = item?.isSynchronizable ?? decision?.isSynchronizable
    self.containsSecureEnclaveKey =
      containsSecureEnclaveKey ?? (item?.secret == nil ? nil : item?.containsSecureEnclaveKey)
      ?? decision?.containsSecureEnclaveKey
  }

  /// On which ways it comes to another device; `nil` of a target's own item, which has no way to go.
  package var ways: TransferAssessments? {
    guard !restoreOutcomes.isEmpty else { return nil }
    return TransferAssessments(
      restoreOutcomes: restoreOutcomes, protection: protection, isSynchronizable: isSynchronizable)
  }

  /// The reason that matters most: why it does not arrive on the target, in this archive, or anywhere.
  package var reason: Reason? {
    if case .missing(_, let rule) = location { return rule }
    if let onTarget { return onTarget.outcome.reason }
    return decision?.outcome.reason
      ?? restoreOutcomes[RestoreScenario(hasPassword: true, onSameDevice: false)]?.reason
  }
}

extension ProtectionClass {
  /// Whether an item of this class can be read in a state of its device.
  ///
  /// Source: Apple Platform Security, "Keychain data protection".
  package func isReadable(in state: DeviceState) -> Bool {
    switch (keyClass, state) {
    case (_, .unlocked): true
    case (.afterFirstUnlock, .locked), (.afterFirstUnlockThisDeviceOnly, .locked): true
    case (.always, _), (.alwaysThisDeviceOnly, _): true
    case (_, .locked), (_, .beforeFirstUnlock): false
    }
  }

  /// When an item of this class can be read, in a sentence.
  package var readability: String {
    switch self {
    case .whenUnlocked, .whenUnlockedThisDeviceOnly: "while the device is unlocked"
    case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly:
      "after the first unlock following a restart, even while the device is locked"
    case .always, .alwaysThisDeviceOnly: "always, even before the first unlock (deprecated since iOS 12)"
    case .whenPasscodeSetThisDeviceOnly:
      "while the device is unlocked and a passcode is set; removing the passcode destroys the item"
    }
  }
}

extension ItemExplainer {
  /// The items of a dump or a database that are meant, as a backup made of its device would hold them.
  ///
  /// The device is not known: who made the dump has no part in a story, and a target counts as another device.
  ///
  /// - Parameters:
  ///   - dump: The items; a place is one in it, counted from 0.
  ///   - name: What messages call it.
  ///   - target: The device that they should go to.
  ///   - policy: What becomes of items that are there already.
  /// - Throws: `.noSuchItem` for a place that it does not have; what keeps the target from being read, with its name.
  package func explanations(
    of dump: KeychainDump, named name: String, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> [ItemExplanation] {
    try selection.check(count: dump.items.count, of: name)
    let simulatedBackup = try SimulatedBackup(of: dump, named: name, hasPassword: true)
    let leftOut = Dictionary(simulatedBackup.leftOut.map { ($0.index, $0) }, uniquingKeysWith: { first, _ in first })
    let deleted = Set(simulatedBackup.tombstones.map(\.index))
    var onTarget: [Int: MigrationPlan.Decision] = [:]
    if let target {
      do throws(KeyhaulError) {
        onTarget = Self.byPlace(try Restorer.plan(dump, named: name, hasPassword: true, onto: target, policy: policy))
      } catch {
        throw error.with(subject: target.name)
      }
    }
    return dump.items.compactMap { dumped in
      let named = dumped.item ?? KeychainItem(named: ItemDescriptor(undecryptable: dumped.kind), dumped.protection)
      guard selection.contains(named, index: dumped.index) else { return nil }
      guard !deleted.contains(dumped.index) else {
        return Self.explanation(ofDeleted: dumped.item, ItemDescriptor(named), named.protection)
      }
      return Self.explanation(of: dumped, named: ItemDescriptor(named), leftOut[dumped.index], onTarget[dumped.index])
    }
  }

  private static func explanation(
    of dumped: DumpedItem, named identity: ItemDescriptor, _ left: MigrationPlan.Decision?,
    _ onTarget: MigrationPlan.Decision?
  ) -> ItemExplanation {
    let protection = dumped.item?.protection ?? dumped.protection
    var restoreOutcomes: RestoreOutcomes = [:]
    for scenario in RestoreScenario.allCases {
      restoreOutcomes[scenario] = left.map { RestoreOutcome($0.outcome) } ?? protection?.restoreOutcome(in: scenario)
    }
    return ItemExplanation(
      location: .device(index: dumped.index), identity: identity, protection: protection,
      restoreOutcomes: restoreOutcomes,
      decision: left.map {
        MigrationPlan.Decision(
          index: dumped.index, identity: identity, protection: protection, outcome: $0.outcome, detail: $0.detail)
      },
      onTarget: onTarget, item: dumped.item)
  }

  private static func byPlace(_ plan: MigrationPlan) -> [Int: MigrationPlan.Decision] {
    Dictionary(plan.decisions.map { ($0.index, $0) }, uniquingKeysWith: { first, _ in first })
  }
}
