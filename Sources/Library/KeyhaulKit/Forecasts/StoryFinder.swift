public import Backups
import Basics
public import KeychainFormats
import KeychainRules
public import Keychains
public import VirtualDevice

/// Finds the items that a question means, in an archive and on the devices that are available, and puts together what is
/// known of each.
public struct StoryFinder {
  /// Which items are meant.
  public struct Wanted {
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
    public init(_ query: ItemQuery, index: Int?, admits: @escaping (KeychainItem) -> Bool) {
      self.query = query
      self.index = index
      self.admits = admits
    }

    /// Refuses a place that a backup with so many items does not have.
    func check(count: Int, of name: String) throws(MigrationError) {
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
  public init(_ wanted: Wanted) { self.wanted = wanted }

  // MARK: An archive

  /// The items of an archive that are meant; where there is none, those of its maker and of the target.
  ///
  /// - Parameters:
  ///   - archive: The archive, opened with every key at hand.
  ///   - name: What messages call the archive.
  ///   - maker: The device that says it made the archive, where it is available: asked for items that are not in it.
  ///   - target: The device that the items should go to, and the plan of a restore onto it.
  /// - Throws: `.noSuchItem` for a place that it does not have; what keeps a device from being read, with its name.
  public func stories(
    in archive: OpenedArchive, named name: String, maker: DeviceSession?,
    onto target: (device: DeviceSession, plan: MigrationPlan)?
  ) throws(MigrationError) -> [ItemStory] {
    try wanted.check(count: archive.items.count, of: name)
    let opened = MigrationPlanner.plan(
      archive.items, onto: [], policy: .merge,
      surroundings: RestoreSurroundings(backupHasPassword: archive.hasPassword)
    ).naming(archive.knownSealed)
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
  private func missing(from maker: DeviceSession) throws(MigrationError) -> [ItemStory] {
    let rows = try rows(on: maker, tombstones: .included)
    guard !rows.isEmpty else { return [] }
    var rules: [RowReference: Reason] = [:]
    let forecast = try forecast(of: maker)
    for left in forecast.leftOut + forecast.tombstones { rules[left.item.row] = left.reason }
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
  private func ofTargetAlone(_ target: DeviceSession, _ plan: MigrationPlan) throws(MigrationError) -> [ItemStory] {
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
  public func stories(
    on source: DeviceSession, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(MigrationError) -> [ItemStory] {
    let rows = try rows(on: source, tombstones: .included)
    if rows.isEmpty, wanted.index == nil { return [] }
    let forecast = try forecast(of: source)
    try wanted.check(count: forecast.exported.count + forecast.leftOut.count, of: source.name)
    let comparison: MigrationComparison
    var plan: MigrationPlan?
    do throws(MigrationError) {
      comparison = try MigrationComparison(of: source, onto: target ?? source, knowing: forecast)
      if let target { plan = try Restorer.plan(forecast, onto: target, policy: policy) }
    } catch {
      throw error.about(source.name)
    }
    var positions: [RowReference: Int] = [:]
    for (position, item) in (forecast.exported + forecast.leftOut.map(\.item)).enumerated() {
      positions[item.row] = position
    }
    let marks = Set(forecast.tombstones.map(\.item.row))
    return rows.compactMap { row in
      if wanted.index == nil, marks.contains(row.summary.reference) { return Self.story(ofDeleted: row) }
      guard let position = positions[row.summary.reference],
        wanted.index == nil || wanted.index == position
      else { return nil }
      let left = position < forecast.exported.count ? nil : forecast.leftOut[position - forecast.exported.count]
      let outcome = left.map {
        $0.reason.isDamage ? MigrationPlan.Outcome.unreadable($0.reason) : .staysBehind($0.reason)
      }
      return ItemStory(
        place: .device(index: position), identity: row.identity, protection: row.protection,
        prospects: comparison.items[position].allProspects,
        decision: outcome.map {
          MigrationPlan.Decision(
            index: position, identity: row.identity, protection: row.protection, outcome: $0, detail: left?.detail)
        },
        onTarget: plan?.decisions[position], item: row.item,
        holdsEnclaveKey: left?.item.holdsEnclaveKey ?? forecast.holdsEnclaveKey(at: position))
    }
  }

  private static func story(ofDeleted row: KeychainRow) -> ItemStory {
    story(ofDeleted: row.item, row.identity, row.protection)
  }

  static func story(
    ofDeleted item: KeychainItem?, _ identity: ItemIdentity, _ protection: ProtectionClass?
  ) -> ItemStory {
    ItemStory(
      place: .deleted, identity: identity, protection: protection,
      prospects: RestoreProspects(all: .staysBehind(.deleted)),
      decision: nil, onTarget: nil, item: item)
  }

  private func forecast(of device: DeviceSession) throws(MigrationError) -> BackupForecast {
    do throws(MigrationError) {
      return try BackupForecast(of: device, hasPassword: true)
    } catch {
      throw error.about(device.name)
    }
  }

  private func rows(
    on device: DeviceSession, tombstones: ItemQuery.Tombstones = .excluded
  ) throws(MigrationError) -> [KeychainRow] {
    var query = wanted.query
    query.tombstones = tombstones
    do throws(VirtualDeviceError) {
      return try device.rows(matching: query)
    } catch {
      throw MigrationError(error).about(device.name)
    }
  }
}

extension ExportReport.Item {
  /// The row that holds it.
  fileprivate var row: RowReference { RowReference(kind: identity.kind, rowID: rowID) }
}

extension KeychainRow {
  /// What a person knows it by. Hostile.
  fileprivate var identity: ItemIdentity {
    item.map(ItemIdentity.init) ?? ItemIdentity(sealed: summary.kind, accessGroup: summary.accessGroup)
  }

  fileprivate var protection: ProtectionClass? { item.map(\.protection) ?? summary.protection }
}
