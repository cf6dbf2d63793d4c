import Backups
import Basics
import KeychainFormats
import KeychainRules
public import Keychains
public import VirtualDevice

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
  public func stories(
    of dump: KeychainDump, named name: String, onto target: DeviceSession?, policy: ExistingItemPolicy
  ) throws(MigrationError) -> [ItemStory] {
    try wanted.check(count: dump.items.count, of: name)
    let forecast = try BackupForecast(of: dump, named: name, hasPassword: true)
    let leftOut = Dictionary(forecast.leftOut.map { (Int($0.item.rowID), $0) }, uniquingKeysWith: { first, _ in first })
    let deleted = Set(forecast.tombstones.map { Int($0.item.rowID) })
    var onTarget: [Int: MigrationPlan.Decision] = [:]
    if let target {
      do throws(MigrationError) {
        onTarget = Self.byPlace(try Restorer.plan(dump, named: name, hasPassword: true, onto: target, policy: policy))
      } catch {
        throw error.about(target.name)
      }
    }
    return dump.items.compactMap { dumped in
      let named = dumped.item ?? KeychainItem(named: ItemIdentity(sealed: dumped.kind), dumped.protection)
      guard wanted.means(named, index: dumped.index) else { return nil }
      guard !deleted.contains(dumped.index) else {
        return Self.story(ofDeleted: dumped.item, ItemIdentity(named), named.protection)
      }
      return Self.story(of: dumped, named: ItemIdentity(named), leftOut[dumped.index], onTarget[dumped.index])
    }
  }

  private static func story(
    of dumped: DumpedItem, named identity: ItemIdentity, _ left: ExportReport.LeftOut?,
    _ onTarget: MigrationPlan.Decision?
  ) -> ItemStory {
    let protection = dumped.item?.protection ?? dumped.protection
    let outcome = left.map { left in
      left.reason.isDamage ? MigrationPlan.Outcome.unreadable(left.reason) : .staysBehind(left.reason)
    }
    var prospects: RestoreProspects = [:]
    for setting in RestoreSetting.allCases {
      prospects[setting] =
        left.map { $0.reason.isDamage ? .unreadable($0.reason) : .staysBehind($0.reason) }
        ?? protection?.prospect(in: setting)
    }
    return ItemStory(
      place: .device(index: dumped.index), identity: identity, protection: protection, prospects: prospects,
      decision: outcome.map {
        MigrationPlan.Decision(
          index: dumped.index, identity: identity, protection: protection, outcome: $0, detail: left?.detail)
      },
      onTarget: onTarget, item: dumped.item)
  }

  private static func byPlace(_ plan: MigrationPlan) -> [Int: MigrationPlan.Decision] {
    Dictionary(plan.decisions.map { ($0.index, $0) }, uniquingKeysWith: { first, _ in first })
  }
}
