package import Backups
import Basics
package import KeychainFormats
package import KeychainRules
package import Keychains
package import VirtualDevice

/// Finds the items that a question means, in an archive and on the devices that are available, and puts together what is
/// known of each.
package struct StoryFinder {
  /// Which items are meant.
  package struct Wanted {
    let query: ItemQuery
    let index: Int?
    private let admits: (KeychainItem) -> Bool

    /// Creates what is asked about.
    ///
    /// - Parameters:
    ///   - query: For the rows of a device.
    ///   - index: The item at this place in the backup; `nil` for any.
    ///   - admits: Whether an item that no database holds is meant; one of which only the names are known is asked about
    ///     as an item of these.
    package init(_ query: ItemQuery, index: Int?, admits: @escaping (KeychainItem) -> Bool) {
      self.query = query
      self.index = index
      self.admits = admits
    }

    /// Refuses a place that a backup with so many items does not have.
    func check(count: Int, of name: String) throws(KeyhaulError) {
      guard let index, !(0..<count).contains(index) else { return }
      throw .noSuchItem(index, in: name, count: count)
    }

    func means(_ item: KeychainItem, index: Int) -> Bool {
      if let wanted = self.index, wanted != index { return false }
      return admits(item)
    }
  }

  let wanted: Wanted

  /// Creates a finder of the stories of these items.
  package init(_ wanted: Wanted) { self.wanted = wanted }

  // MARK: An archive

  /// The items of an archive that are meant; where there is none, those of its maker and of the target.
  ///
  /// - Parameters:
  ///   - archive: The archive, opened with every key at hand.
  ///   - name: What messages call the archive.
  ///   - maker: The device that says it made the archive, where it is available: asked for items that are not in it.
  ///   - target: The device that the items should go to, and the plan of a restore onto it.
  /// - Throws: `.noSuchItem` for a place that it does not have; what keeps a device from being read, with its name.
  package func stories(
    in archive: UnlockedBackup, named name: String, maker: DeviceSession?,
    onto target: (device: DeviceSession, plan: MigrationPlan)?
  ) throws(KeyhaulError) -> [ItemStory] {
    try wanted.check(count: archive.items.count, of: name)
    let opened = MigrationPlanner.plan(
      archive.items, onto: [], policy: .merge,
      surroundings: RestoreContext(backupHasPassword: archive.hasPassword)
    ).naming(archive.encryptedItemSummaries)
    let comparison = MigrationComparison(of: archive, opened)
    var stories: [ItemStory] = []
    for (position, item) in archive.items.enumerated() {
      let decision = opened.decisions[position]
      let isSelected =
        item.item.map { wanted.means($0, index: item.index) }
        ?? wanted.means(KeychainItem(named: decision.identity, item.protection), index: item.index)
      guard isSelected else { continue }
      stories.append(
        ItemStory(
          place: .archive(index: item.index), identity: decision.identity, protection: item.protection,
          prospects: comparison.items[position].allProspects, decision: decision,
          onTarget: target?.plan.decisions[position], item: item.item))
    }
    guard stories.isEmpty, wanted.index == nil else { return stories }
    let claimed = archive.archive.device.identifier
    if let maker { stories += try missing(from: maker) }
    if let (device, plan) = target {
      stories += device.record.udid == claimed ? try missing(from: device) : try ofTargetAlone(device, plan)
    }
    return stories
  }

  /// Items of the device that made the archive which are not in it.
  private func missing(from maker: DeviceSession) throws(KeyhaulError) -> [ItemStory] {
    let rows = try rows(on: maker, tombstones: .included)
    guard !rows.isEmpty else { return [] }
    var rules: [RowReference: Reason] = [:]
    let forecast = try forecast(of: maker)
    for left in forecast.leftOut + forecast.tombstones { rules[left.row] = left.outcome.reason }
    return rows.map { row in
      let rule = rules[row.summary.reference]
      let protection = row.protection
      var prospects: RestoreProspects = [:]
      for setting in RestoreSetting.allCases {
        prospects[setting] = rule.map(Prospect.staysBehind) ?? protection?.prospect(in: setting)
      }
      return ItemStory(
        place: .missing(from: maker.name, rule: rule), identity: row.identity, protection: protection,
        prospects: prospects, decision: nil, onTarget: nil, item: row.item)
    }
  }

  /// The target's own items, of which the archive holds nothing.
  private func ofTargetAlone(_ target: DeviceSession, _ plan: MigrationPlan) throws(KeyhaulError) -> [ItemStory] {
    try rows(on: target).map { row in
      let isRemoved = plan.removed.contains(row.identity)
      return ItemStory(
        place: .targetOnly(isRemoved: isRemoved), identity: row.identity, protection: row.protection, prospects: [:],
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
  package func stories(
    on source: DeviceSession, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> [ItemStory] {
    let rows = try rows(on: source, tombstones: .included)
    if rows.isEmpty, wanted.index == nil { return [] }
    let forecast = try forecast(of: source)
    try wanted.check(count: forecast.exported.count + forecast.leftOut.count, of: source.name)
    let comparison: MigrationComparison
    var plan: MigrationPlan?
    do throws(KeyhaulError) {
      comparison = try MigrationComparison(of: source, onto: target ?? source, knowing: forecast)
      if let target { plan = try Restorer.plan(forecast, onto: target, policy: policy) }
    } catch {
      throw error.with(subject: source.name)
    }
    var positions: [RowReference: Int] = [:]
    for (position, row) in (forecast.exported.map(\.row) + forecast.leftOut.map(\.row)).enumerated() {
      positions[row] = position
    }
    let marks = Set(forecast.tombstones.map(\.row))
    return rows.compactMap { row in
      if wanted.index == nil, marks.contains(row.summary.reference) { return Self.story(ofDeleted: row) }
      guard let position = positions[row.summary.reference],
        wanted.index == nil || wanted.index == position
      else { return nil }
      let left = position < forecast.exported.count ? nil : forecast.leftOut[position - forecast.exported.count]
      return ItemStory(
        place: .device(index: position), identity: row.identity, protection: row.protection,
        prospects: comparison.items[position].allProspects,
        decision: left.map {
          MigrationPlan.Decision(
            index: position, identity: row.identity, protection: row.protection, outcome: $0.outcome, detail: $0.detail)
        },
        onTarget: plan?.decisions[position], item: row.item,
        containsSecureEnclaveKey: left?.containsSecureEnclaveKey ?? forecast.containsSecureEnclaveKey(at: position))
    }
  }

  private static func story(ofDeleted row: KeychainRow) -> ItemStory {
    story(ofDeleted: row.item, row.identity, row.protection)
  }

  static func story(
    ofDeleted item: KeychainItem?, _ identity: ItemDescriptor, _ protection: ProtectionClass?
  ) -> ItemStory {
    ItemStory(
      place: .deleted, identity: identity, protection: protection,
      prospects: RestoreProspects(all: .staysBehind(.deleted)),
      decision: nil, onTarget: nil, item: item)
  }

  private func forecast(of device: DeviceSession) throws(KeyhaulError) -> BackupForecast {
    do throws(KeyhaulError) {
      return try BackupForecast(of: device, hasPassword: true)
    } catch {
      throw error.with(subject: device.name)
    }
  }

  private func rows(
    on device: DeviceSession, tombstones: ItemQuery.Tombstones = .excluded
  ) throws(KeyhaulError) -> [KeychainRow] {
    var query = wanted.query
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
package struct ItemStory: Sendable {
  /// Where the item was found.
  package enum Place: Sendable, Hashable {
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
  package let place: Place
  /// The names that it is known by.
  package let identity: ItemDescriptor
  /// The class that protects it; `nil` if nothing says it.
  package let protection: ProtectionClass?
  /// One for each of the four restores; empty where nothing is known of them.
  package let prospects: RestoreProspects
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
  ///   - prospects: What becomes of it in each of the four restores.
  ///   - decision: What becomes of it in this archive or backup.
  ///   - onTarget: What it does on the target.
  ///   - item: The item in clear, as far as it opens, with or without its value.
  ///   - containsSecureEnclaveKey: Whether its value has the form of a key of the Secure Enclave, where that is known apart.
  package init(
    place: Place, identity: ItemDescriptor, protection: ProtectionClass?, prospects: RestoreProspects,
    decision: MigrationPlan.Decision?, onTarget: MigrationPlan.Decision?, item: KeychainItem? = nil,
    containsSecureEnclaveKey: Bool? = nil
  ) {
    self.place = place
    self.identity = identity
    self.protection = protection
    self.prospects = prospects
    self.decision = decision
    self.onTarget = onTarget
    isSynchronizable = item?.isSynchronizable ?? decision?.isSynchronizable
    self.containsSecureEnclaveKey =
      containsSecureEnclaveKey ?? (item?.secret == nil ? nil : item?.containsSecureEnclaveKey)
      ?? decision?.containsSecureEnclaveKey
  }

  /// On which ways it comes to another device; `nil` of a target's own item, which has no way to go.
  package var ways: TransferAssessments? {
    guard !prospects.isEmpty else { return nil }
    return TransferAssessments(prospects: prospects, protection: protection, isSynchronizable: isSynchronizable)
  }

  /// The reason that matters most: why it does not arrive on the target, in this archive, or anywhere.
  package var reason: Reason? {
    if case .missing(_, let rule) = place { return rule }
    if let onTarget { return onTarget.outcome.reason }
    return decision?.outcome.reason
      ?? prospects[RestoreSetting(hasPassword: true, onSameDevice: false)]?.reason
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

extension StoryFinder {
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
  package func stories(
    of dump: KeychainDump, named name: String, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> [ItemStory] {
    try wanted.check(count: dump.items.count, of: name)
    let forecast = try BackupForecast(of: dump, named: name, hasPassword: true)
    let leftOut = Dictionary(forecast.leftOut.map { ($0.index, $0) }, uniquingKeysWith: { first, _ in first })
    let deleted = Set(forecast.tombstones.map(\.index))
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
      guard wanted.means(named, index: dumped.index) else { return nil }
      guard !deleted.contains(dumped.index) else {
        return Self.story(ofDeleted: dumped.item, ItemDescriptor(named), named.protection)
      }
      return Self.story(of: dumped, named: ItemDescriptor(named), leftOut[dumped.index], onTarget[dumped.index])
    }
  }

  private static func story(
    of dumped: DumpedItem, named identity: ItemDescriptor, _ left: MigrationPlan.Decision?,
    _ onTarget: MigrationPlan.Decision?
  ) -> ItemStory {
    let protection = dumped.item?.protection ?? dumped.protection
    var prospects: RestoreProspects = [:]
    for setting in RestoreSetting.allCases {
      prospects[setting] = left.map { Prospect($0.outcome) } ?? protection?.prospect(in: setting)
    }
    return ItemStory(
      place: .device(index: dumped.index), identity: identity, protection: protection, prospects: prospects,
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
