import ArchivedKeychain
import BackupArchive
import CommandSession
import KeychainFormats
import KeychainRules
import KeychainStore
import Migration
import VirtualDevice

/// Finds the items that a question means, in an archive and on the devices that are at hand, and puts together what is
/// known of each.
struct StoryFinder {
  struct Wanted {
    let selection: ItemSelection
    /// The item at this place in the backup.
    let index: Int?

    /// Refuses a place that a backup with so many items does not have.
    func check(count: Int, of name: String) throws(CommandFailure) {
      guard let index, !(0..<count).contains(index) else { return }
      throw .usage(
        "there is no item \(Amounts.grouped(index))",
        why: "\(name) has \(Amounts.count(count, "item")), counted from 0", try: "plan --json gives the places")
    }

    /// An item of which only the names are known is judged by these.
    func means(_ identity: ItemIdentity, _ protection: ProtectionClass?, index: Int) -> Bool {
      if let wanted = self.index, wanted != index { return false }
      return selection.admits(identity, protection)
    }

    func means(_ item: KeychainItem, index: Int) -> Bool {
      if let wanted = self.index, wanted != index { return false }
      return selection.admits(item)
    }
  }

  let wanted: Wanted
  let target: DeviceSession?
  let policy: ExistingItemPolicy

  // MARK: An archive

  /// - Parameters:
  ///   - name: What messages call the archive.
  ///   - maker: The device that says it made the archive, where it is at hand: asked for items that are not in it.
  /// - Throws: `.usage` for a place that it does not have.
  func stories(in archive: OpenedArchive, named name: String, maker: DeviceSession?) throws -> [ItemStory] {
    try wanted.check(count: archive.items.count, of: name)
    let plan = try target.map { try planned(archive, onto: $0) }
    let opened = MigrationPlanner.plan(
      archive.items, onto: [], policy: .merge,
      surroundings: RestoreSurroundings(backupHasPassword: archive.archive.isEncrypted)
    ).naming(archive.sealedNames)
    let comparison = MigrationComparison(of: archive, opened)
    var stories: [ItemStory] = []
    for (position, item) in archive.items.enumerated() {
      let decision = opened.decisions[position]
      let isMeant =
        item.item.map { wanted.means($0, index: item.index) }
        ?? wanted.means(decision.identity, item.protection, index: item.index)
      guard isMeant else { continue }
      stories.append(
        ItemStory(
          place: .archive(index: item.index), identity: decision.identity, protection: item.protection,
          prospects: comparison.items[position].allProspects, decision: decision,
          onTarget: plan?.decisions[position]))
    }
    guard stories.isEmpty, wanted.index == nil else { return stories }
    let claimed = archive.archive.device.identifier
    if let maker { stories += try missing(from: maker) }
    if let target {
      stories += target.record.udid == claimed ? try missing(from: target) : try ofTargetAlone(target, plan)
    }
    return stories
  }

  private func planned(_ archive: OpenedArchive, onto target: DeviceSession) throws(CommandFailure) -> MigrationPlan {
    do throws(MigrationError) {
      return try Restorer.plan(archive, onto: target, policy: policy)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(target.name)")
    }
  }

  /// Items of the device that made the archive which are not in it.
  private func missing(from maker: DeviceSession) throws -> [ItemStory] {
    let rows = try rows(on: maker, tombstones: .included)
    guard !rows.isEmpty else { return [] }
    var rules: [RowReference: Reason] = [:]
    let forecast = try forecast(of: maker)
    for left in forecast.leftOut + forecast.tombstones { rules[left.item.row] = left.reason }
    return rows.map { row in
      let rule = rules[row.summary.reference]
      let protection = row.protection
      var prospects: [RestoreSetting: Prospect] = [:]
      for setting in RestoreSetting.allCases {
        prospects[setting] = rule.map(Prospect.staysBehind) ?? protection?.prospect(in: setting)
      }
      return ItemStory(
        place: .missing(from: maker.name, rule: rule), identity: row.identity, protection: protection,
        prospects: prospects, decision: nil, onTarget: nil)
    }
  }

  /// The target's own items, of which the archive holds nothing.
  private func ofTargetAlone(_ target: DeviceSession, _ plan: MigrationPlan?) throws -> [ItemStory] {
    try rows(on: target).map { row in
      let isRemoved = plan?.removed.contains(row.identity) == true
      return ItemStory(
        place: .targetOnly(isRemoved: isRemoved), identity: row.identity, protection: row.protection, prospects: [:],
        decision: nil, onTarget: nil)
    }
  }

  // MARK: A device

  func stories(on source: DeviceSession) throws -> [ItemStory] {
    let rows = try rows(on: source, tombstones: .included)
    if rows.isEmpty, wanted.index == nil { return [] }
    let forecast = try forecast(of: source)
    try wanted.check(count: forecast.exported.count + forecast.leftOut.count, of: source.name)
    let comparison: MigrationComparison
    var plan: MigrationPlan?
    do throws(MigrationError) {
      comparison = try MigrationComparison(of: source, onto: target ?? source, hasPassword: true)
      if let target { plan = try Restorer.plan(forecast, onto: target, policy: policy) }
    } catch {
      throw CommandFailure(error, device: source.name)
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
        onTarget: plan?.decisions[position])
    }
  }

  private static func story(ofDeleted row: ItemRow) -> ItemStory {
    ItemStory(
      place: .deleted, identity: row.identity, protection: row.protection,
      prospects: Dictionary(uniqueKeysWithValues: RestoreSetting.allCases.map { ($0, .staysBehind(.deleted)) }),
      decision: nil, onTarget: nil)
  }

  private func forecast(of device: DeviceSession) throws(CommandFailure) -> BackupForecast {
    do throws(MigrationError) {
      return try BackupForecast(of: device, hasPassword: true)
    } catch {
      throw CommandFailure(error, device: device.name)
    }
  }

  private func rows(
    on device: DeviceSession, tombstones: ItemQuery.Tombstones = .excluded
  ) throws(CommandFailure) -> [ItemRow] {
    var query = wanted.selection.query
    query.tombstones = tombstones
    do throws(VirtualDeviceError) {
      return try device.rows(matching: query).map(ItemRow.init)
    } catch {
      throw CommandFailure(error, device: device.name)
    }
  }
}

extension ExportReport.Item {
  /// The row that holds it.
  fileprivate var row: RowReference { RowReference(kind: identity.kind, rowID: rowID) }
}
