public import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
public import VirtualDevice

/// Makes plans for a device and carries them out.
public enum Restorer {
  /// Decides what restoring an archive onto a device would do. Changes nothing; the device may be locked.
  ///
  /// - Parameters:
  ///   - archive: The backup, opened with the target's hardware key.
  ///   - session: A hold on the target.
  ///   - policy: What happens to the target's own items before anything is imported.
  ///   - indexes: Only these items of the archive, by their position; `nil` for all.
  ///   - use: `.restoring` for a plan that is carried out. Any other makes one to be looked at, `.planning` also of what can be
  ///     opened of a backup that no restore takes.
  /// - Throws: Category `damaged` for a backup that its device never finished, `refused` for one without a password whose
  ///   keychain no hardware binds, and what the device's keychain reports.
  public static func plan(
    _ archive: UnlockedBackup, onto session: DeviceSession, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(KeyhaulError) -> MigrationPlan {
    try plan(archive, onto: .device(session), policy: policy, only: indexes, for: use)
  }

  /// Plans the restore of an archive to a device or a Simulator, like the method above. For a Simulator, the archive is
  /// opened without a target's hardware key.
  package static func plan(
    _ archive: UnlockedBackup, onto target: RestoreTarget, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(KeyhaulError) -> MigrationPlan {
    try archive.archive.requireUsableClassKeys(for: use)
    try archive.require(use)
    return MigrationPlanner.plan(
      archive.items, only: indexes, onto: try target.rows(), policy: policy,
      context: RestoreContext(targetSyncs: target.isSyncing, backupHasPassword: archive.hasPassword),
      cache: ImportCache(), keepsImports: use == .restoring
    ).naming(archive.encryptedItemSummaries)
  }

  /// Carries out a plan in one transaction: exactly what it says, or nothing. One that changes nothing is only held
  /// against the keychain: revision and files stay as they are.
  ///
  /// - Parameters:
  ///   - plan: One that was made for `.restoring` and for this device.
  ///   - session: The unlocked device, whose clock is asked between items whether to go on.
  ///   - progress: Told now and then of a large one how many imports are done, and of how many.
  /// - Throws: Category `locked` where the device must be unlocked first; `stalePlan` where the keychain would not come
  ///   out as the plan says; `planToLookAt` for one that was not made for `.restoring`; what the keychain ends with where
  ///   the device's clock says that nobody waits any more (`KeyhaulError.isCancelled`). Whatever is thrown, the keychain
  ///   is as before.
  public static func restore(
    _ plan: MigrationPlan, onto session: DeviceSession, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(KeyhaulError) {
    try restore(plan, onto: .device(session), progress: progress)
  }

  /// Carries out a plan, like the method above. For a Simulator, this happens within its keychain's transaction, which
  /// the caller commits.
  package static func restore(
    _ plan: MigrationPlan, onto target: RestoreTarget, progress: (Int, Int) -> Void = { _, _ in }
  ) throws(KeyhaulError) {
    guard plan.keepsImports else { throw .planToLookAt }
    try target.requireReadableRows()
    switch target {
    case .device(let session):
      guard !plan.changesNothing else { return try checkUnchanged(plan, on: session) }
      let random = session.environment.random
      let store = try session.prepareItemChanges()
      try store.restore { (transaction) throws(KeyhaulError) in
        if plan.policy == .replace {
          try plan.requireRemovedRowCount(try transaction.deleteNonSynced())
        }
        let kinds = plan.imports.lazy.map(plan.kind(of:))
        try transaction.importing(kinds) { () throws(KeyhaulError) in
          try importAll(of: plan, progress) { (incoming) throws(KeyhaulError) in
            try transaction.importItem(incoming, keys: session.classKeys, random: random)
          }
        }
      }
    case .simulator(let simulator):
      guard let keychain = simulator.keychain else { throw .planToLookAt }
      let transaction = try SimulatorRestoreTransaction(keychain, rows: simulator.rows)
      if plan.policy == .replace {
        try plan.requireRemovedRowCount(try transaction.deleteNonSynced())
      }
      try importAll(of: plan, progress) { (incoming) throws(KeyhaulError) in
        try transaction.importItem(incoming)
      }
    }
  }

  /// Imports the items of a plan one by one, and stops at the first item whose result differs from the plan.
  private static func importAll(
    of plan: MigrationPlan, _ progress: (Int, Int) -> Void,
    _ importItem: (IncomingItem) throws(KeyhaulError) -> ImportResolution
  ) throws(KeyhaulError) {
    for (place, planned) in plan.imports.enumerated() {
      if place > 0, place.isMultiple(of: progressStep) { progress(place, plan.imports.count) }
      let resolution = try importItem(try plan.incoming(planned))
      guard resolution.outcome == planned.outcome else { throw .stalePlan(plan.difference(at: planned)) }
    }
  }

  /// A restore of fewer imports is over before anybody looks.
  private static let progressStep = 256

  private static func checkUnchanged(_ plan: MigrationPlan, on session: DeviceSession) throws(KeyhaulError) {
    try session.requireWriting()
    let store = try session.keychain
    var items: [IncomingItem] = []
    for planned in plan.imports { items.append(try plan.incoming(planned)) }
    let isAsPlanned = try store.areImportsNoOps(items, keys: session.classKeys)
    guard isAsPlanned else { throw .stalePlan("an existing item has changed") }
  }

  static func targetRows(of session: DeviceSession) throws(KeyhaulError) -> [TargetRow] {
    let store = try session.keychain
    var rows: [TargetRow] = []
    try store.forEachRowOfEveryUser(keys: session.classKeys) { (row) throws(KeyhaulError) in
      rows.append(try TargetRow(row))
    }
    return rows
  }
}
