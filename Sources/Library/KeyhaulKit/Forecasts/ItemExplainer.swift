package import Backups
import Basics
package import KeychainFormats
import KeychainRules
package import Keychains
package import VirtualDevice

/// Finds selected items in a backup and on the available devices, and collects all that is known about each.
package struct ItemExplainer {
  /// The selection of items.
  package struct Selection {
    let query: ItemQuery
    let index: Int?
    private let matches: (KeychainItem) -> Bool

    /// Creates a selection.
    ///
    /// - Parameters:
    ///   - query: The query for rows of a device.
    ///   - index: The index of the item in the backup; `nil` means all.
    ///   - matches: Returns whether an item outside of a database matches. For an encrypted item, the argument contains
    ///     only the known names and the protection class.
    package init(_ query: ItemQuery, index: Int?, matches: @escaping (KeychainItem) -> Bool) {
      self.query = query
      self.index = index
      self.matches = matches
    }

    /// Checks that a backup with this number of items has the selected index.
    func check(count: Int, of name: String) throws(KeyhaulError) {
      guard let index, !(0..<count).contains(index) else { return }
      throw .noSuchItem(index, in: name, count: count)
    }

    func contains(_ item: KeychainItem, index: Int) -> Bool {
      if let selectedIndex = self.index, selectedIndex != index { return false }
      return matches(item)
    }
  }

  let selection: Selection

  /// Creates an explainer of the selected items.
  package init(_ selection: Selection) { self.selection = selection }

  // MARK: A backup

  /// Explains the selected items of a backup. If the backup contains no such item, and the selection has no index,
  /// explains the selected items of the source device and of the target.
  ///
  /// - Parameters:
  ///   - backup: The backup, decrypted with all available keys.
  ///   - name: The name of the backup in messages.
  ///   - sourceDevice: The source device according to the backup; `nil` if it is not available. It is searched for
  ///     items that are not in the backup.
  ///   - target: The target device, and the plan of a restore to it.
  /// - Throws: `.noSuchItem` for an index that does not exist; an error with the name of a device that cannot be
  ///   read.
  package func explanations(
    in backup: UnlockedBackup, named name: String, sourceDevice: DeviceSession?,
    onto target: (device: DeviceSession, plan: MigrationPlan)?
  ) throws(KeyhaulError) -> [ItemExplanation] {
    try selection.check(count: backup.items.count, of: name)
    var explanations = explanationsOfItems(in: backup, planForTarget: target?.plan)
    guard explanations.isEmpty, selection.index == nil else { return explanations }
    if let sourceDevice { explanations += try explanationsOfMissingItems(on: sourceDevice) }
    if let (device, plan) = target {
      let isSourceDevice = device.record.udid == backup.archive.device.identifier
      explanations +=
        isSourceDevice
        ? try explanationsOfMissingItems(on: device) : try explanationsOnTargetOnly(device, plan)
    }
    return explanations
  }

  /// Explains the selected items that are in the backup.
  private func explanationsOfItems(in backup: UnlockedBackup, planForTarget: MigrationPlan?) -> [ItemExplanation] {
    // The policy has no effect on an empty device.
    let planForEmptyDevice = MigrationPlanner.plan(
      backup.items, onto: [], policy: .merge,
      context: RestoreContext(backupHasPassword: backup.hasPassword)
    ).naming(backup.encryptedItemSummaries)
    let comparison = MigrationComparison(of: backup, planForEmptyDevice)
    var explanations: [ItemExplanation] = []
    for (position, backupItem) in backup.items.enumerated() {
      let decision = planForEmptyDevice.decisions[position]
      // Of an encrypted item, only the names in the decision are known.
      let item = backupItem.item ?? KeychainItem(named: decision.identity, backupItem.protection)
      guard selection.contains(item, index: backupItem.index) else { continue }
      explanations.append(
        ItemExplanation(
          location: .archive(index: backupItem.index), identity: decision.identity, protection: backupItem.protection,
          restoreOutcomes: comparison.items[position].allOutcomes, decision: decision,
          onTarget: planForTarget?.decisions[position], item: backupItem.item))
    }
    return explanations
  }

  /// Explains items of the source device that are not in the backup.
  private func explanationsOfMissingItems(on sourceDevice: DeviceSession) throws(KeyhaulError) -> [ItemExplanation] {
    let rows = try rows(on: sourceDevice, tombstones: .included)
    guard !rows.isEmpty else { return [] }
    var reasons: [RowReference: Reason] = [:]
    let simulatedBackup = try simulatedBackup(of: sourceDevice)
    for decision in simulatedBackup.omissions + simulatedBackup.tombstones {
      reasons[decision.row] = decision.outcome.reason
    }
    return rows.map { row in
      let rule = reasons[row.summary.reference]
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

  /// Explains items that are only on the target.
  private func explanationsOnTargetOnly(
    _ target: DeviceSession, _ plan: MigrationPlan
  ) throws(KeyhaulError) -> [ItemExplanation] {
    try rows(on: target).map { row in
      ItemExplanation(
        location: .targetOnly(isRemoved: plan.removed.contains(row.identity)), identity: row.identity,
        protection: row.protection, restoreOutcomes: [:], decision: nil, onTarget: nil, item: row.item)
    }
  }

  // MARK: A device

  /// Explains the selected items of a device, with a simulated backup of it.
  ///
  /// - Parameters:
  ///   - source: The device, opened for reading.
  ///   - target: The target device.
  ///   - policy: The treatment of the target's own items.
  /// - Throws: `.noSuchItem` for an index that does not exist; an error with the name of a device that cannot be read.
  package func explanations(
    on source: DeviceSession, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> [ItemExplanation] {
    let rows = try rows(on: source, tombstones: .included)
    if rows.isEmpty, selection.index == nil { return [] }
    let simulatedBackup = try simulatedBackup(of: source)
    try selection.check(count: simulatedBackup.exported.count + simulatedBackup.omissions.count, of: source.name)
    let comparison: MigrationComparison
    var planForTarget: MigrationPlan?
    do throws(KeyhaulError) {
      comparison = try MigrationComparison(of: source, onto: target ?? source, using: simulatedBackup)
      if let target { planForTarget = try Restorer.plan(simulatedBackup, onto: target, policy: policy) }
    } catch {
      throw error.with(subject: source.name)
    }
    let indexes = Self.indexesByRow(in: simulatedBackup)
    let tombstones = Set(simulatedBackup.tombstones.map(\.row))
    return rows.compactMap { row in
      if selection.index == nil, tombstones.contains(row.summary.reference) {
        return Self.explanation(ofDeleted: row.item, row.identity, row.protection)
      }
      guard let index = indexes[row.summary.reference],
        selection.index == nil || selection.index == index
      else { return nil }
      return Self.explanation(
        of: row, at: index, in: simulatedBackup, restoreOutcomes: comparison.items[index].allOutcomes,
        onTarget: planForTarget?.decisions[index])
    }
  }

  /// Returns the index of each row in a simulated backup: exported rows, then rows that stay on the device.
  private static func indexesByRow(in simulatedBackup: SimulatedBackup) -> [RowReference: Int] {
    let rows = simulatedBackup.exported.map(\.row) + simulatedBackup.omissions.map(\.row)
    var indexes: [RowReference: Int] = [:]
    for (index, row) in rows.enumerated() { indexes[row] = index }
    return indexes
  }

  /// Returns the explanation of a device's item, at its index in a simulated backup of the device.
  private static func explanation(
    of row: KeychainRow, at index: Int, in simulatedBackup: SimulatedBackup, restoreOutcomes: RestoreOutcomes,
    onTarget decisionOnTarget: MigrationPlan.Decision?
  ) -> ItemExplanation {
    let exportedCount = simulatedBackup.exported.count
    let omission = index < exportedCount ? nil : simulatedBackup.omissions[index - exportedCount]
    let decision = omission.map { omission in
      MigrationPlan.Decision(
        index: index, identity: row.identity, protection: row.protection, outcome: omission.outcome,
        detail: omission.detail)
    }
    return ItemExplanation(
      location: .device(index: index), identity: row.identity, protection: row.protection,
      restoreOutcomes: restoreOutcomes, decision: decision, onTarget: decisionOnTarget, item: row.item,
      containsSecureEnclaveKey: omission?.containsSecureEnclaveKey
        ?? simulatedBackup.containsSecureEnclaveKey(at: index))
  }

  private static func explanation(
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
  /// The item's row.
  fileprivate var row: RowReference { RowReference(kind: identity.kind, rowID: rowID) }
}

extension MigrationPlan.Decision {
  /// The row of an item that stays on its device. In the decision about such an item, `index` is the row number.
  fileprivate var row: RowReference { RowReference(kind: identity.kind, rowID: Int64(index)) }
}

extension KeychainRow {
  /// The item's names. Untrusted.
  fileprivate var identity: ItemDescriptor {
    item.map(ItemDescriptor.init) ?? ItemDescriptor(undecryptable: summary.kind, accessGroup: summary.accessGroup)
  }

  fileprivate var protection: ProtectionClass? { item.map(\.protection) ?? summary.protection }
}

extension ItemExplainer {
  /// Explains the selected items of a dump or a database, with a simulated backup of its device.
  ///
  /// The device is unknown, so every target counts as another device.
  ///
  /// - Parameters:
  ///   - dump: The items. Indexes are those in the dump, from 0.
  ///   - name: The name of the dump in messages.
  ///   - target: The target device.
  ///   - policy: The treatment of the target's own items.
  /// - Throws: `.noSuchItem` for an index that does not exist; an error with the name of a target that cannot be
  ///   read.
  package func explanations(
    of dump: KeychainDump, named name: String, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> [ItemExplanation] {
    try selection.check(count: dump.items.count, of: name)
    let simulatedBackup = try SimulatedBackup(of: dump, named: name, hasPassword: true)
    let omissions = Self.byIndex(simulatedBackup.omissions)
    let tombstoneIndexes = Set(simulatedBackup.tombstones.map(\.index))
    var decisionsOnTarget: [Int: MigrationPlan.Decision] = [:]
    if let target {
      do throws(KeyhaulError) {
        let plan = try Restorer.plan(dump, named: name, hasPassword: true, onto: target, policy: policy)
        decisionsOnTarget = Self.byIndex(plan.decisions)
      } catch {
        throw error.with(subject: target.name)
      }
    }
    return dump.items.compactMap { dumped in
      let namedItem = dumped.item ?? KeychainItem(named: ItemDescriptor(undecryptable: dumped.kind), dumped.protection)
      guard selection.contains(namedItem, index: dumped.index) else { return nil }
      guard !tombstoneIndexes.contains(dumped.index) else {
        return Self.explanation(ofDeleted: dumped.item, ItemDescriptor(namedItem), namedItem.protection)
      }
      return Self.explanation(
        of: dumped, named: ItemDescriptor(namedItem), omission: omissions[dumped.index],
        onTarget: decisionsOnTarget[dumped.index])
    }
  }

  private static func explanation(
    of dumped: DumpedItem, named identity: ItemDescriptor, omission: MigrationPlan.Decision?,
    onTarget decisionOnTarget: MigrationPlan.Decision?
  ) -> ItemExplanation {
    let protection = dumped.item?.protection ?? dumped.protection
    var restoreOutcomes: RestoreOutcomes = [:]
    for scenario in RestoreScenario.allCases {
      restoreOutcomes[scenario] =
        omission.map { RestoreOutcome($0.outcome) } ?? protection?.restoreOutcome(in: scenario)
    }
    let decision = omission.map { omission in
      MigrationPlan.Decision(
        index: dumped.index, identity: identity, protection: protection, outcome: omission.outcome,
        detail: omission.detail)
    }
    return ItemExplanation(
      location: .device(index: dumped.index), identity: identity, protection: protection,
      restoreOutcomes: restoreOutcomes, decision: decision, onTarget: decisionOnTarget, item: dumped.item)
  }

  private static func byIndex(_ decisions: [MigrationPlan.Decision]) -> [Int: MigrationPlan.Decision] {
    Dictionary(decisions.map { ($0.index, $0) }, uniquingKeysWith: { first, _ in first })
  }
}
