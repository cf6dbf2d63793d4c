public import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
public import VirtualDevice

/// Plans restores to a device and carries them out.
public enum Restorer {
  /// Plans the restore of a backup to a device. Nothing is changed, and the device may be locked.
  ///
  /// - Parameters:
  ///   - backup: The backup, decrypted with the target's device key.
  ///   - session: A session of the target.
  ///   - policy: The treatment of the target's own items before the import.
  ///   - indexes: The indexes of the items to restore; `nil` means all.
  ///   - use: `.restoring` for a plan that `restore` accepts. Plans for other uses are only for reports. `.planning` also
  ///     allows backups that cannot be restored.
  /// - Throws: Category `damaged` if the device never finished the backup; `refused` if the backup has no password and its
  ///   class keys are not bound to a device; the errors of the device's keychain.
  public static func plan(
    _ backup: UnlockedBackup, onto session: DeviceSession, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(KeyhaulError) -> MigrationPlan {
    try plan(backup, onto: .device(session), policy: policy, only: indexes, for: use)
  }

  /// Plans the restore of a backup to a device or a Simulator, like the method above. For a Simulator, the backup is
  /// decrypted without a target's device key.
  package static func plan(
    _ backup: UnlockedBackup, onto target: RestoreTarget, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(KeyhaulError) -> MigrationPlan {
    try backup.archive.requireUsable(for: use)
    try backup.requireNoBlockingFinding(for: use)
    return MigrationPlanner.plan(
      backup.items, only: indexes, onto: try target.rows(), policy: policy,
      context: RestoreContext(targetSyncs: target.isSyncing, backupHasPassword: backup.hasPassword),
      cache: ImportCache(), isExecutable: use == .restoring
    ).naming(backup.encryptedItemSummaries)
  }

  /// Carries out a plan in one transaction, either completely or not at all. For a plan without changes, this only checks
  /// that the keychain still needs none, and writes nothing.
  ///
  /// - Parameters:
  ///   - plan: A plan that was made for `.restoring` and for this device.
  ///   - session: A session of the unlocked device. Its clock is asked between items, and can cancel the restore.
  ///   - progress: Called from time to time with the number of finished imports and the number of all imports.
  /// - Throws: Category `locked` if the device must be unlocked first; `stalePlan` if the result would differ from the
  ///   plan; `displayOnlyPlan` for a plan that was not made for `.restoring`; the error of the keychain if the restore was
  ///   cancelled (`KeyhaulError.isCancelled`). After an error whose `stage` is `.beforeCommit`, the keychain is unchanged.
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
    guard plan.isExecutable else { throw .displayOnlyPlan }
    try target.requireReadableRows()
    switch target {
    case .device(let session):
      if plan.changesNothing {
        try checkUnchanged(plan, on: session)
      } else {
        try importItems(of: plan, into: session, progress)
      }
    case .simulator(let simulator):
      guard let keychain = simulator.keychain else { throw .displayOnlyPlan }
      try importItems(
        of: plan, within: try SimulatorRestoreTransaction(keychain, rows: simulator.rows), progress)
    }
  }

  /// Carries out a plan for a device in a transaction of its own.
  private static func importItems(
    of plan: MigrationPlan, into session: DeviceSession, _ progress: (Int, Int) -> Void
  ) throws(KeyhaulError) {
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
  }

  /// Carries out a plan for a Simulator within the transaction of its keychain.
  private static func importItems(
    of plan: MigrationPlan, within transaction: SimulatorRestoreTransaction, _ progress: (Int, Int) -> Void
  ) throws(KeyhaulError) {
    if plan.policy == .replace {
      try plan.requireRemovedRowCount(try transaction.deleteNonSynced())
    }
    try importAll(of: plan, progress) { (incoming) throws(KeyhaulError) in
      try transaction.importItem(incoming)
    }
  }

  /// Imports the items of a plan one by one, and stops at the first item whose result differs from the plan.
  private static func importAll(
    of plan: MigrationPlan, _ progress: (Int, Int) -> Void,
    _ importItem: (IncomingItem) throws(KeyhaulError) -> ImportResolution
  ) throws(KeyhaulError) {
    for (index, planned) in plan.imports.enumerated() {
      if index > 0, index.isMultiple(of: progressStep) { progress(index, plan.imports.count) }
      let resolution = try importItem(try plan.incoming(planned))
      guard resolution.outcome == planned.outcome else { throw .stalePlan(plan.difference(at: planned)) }
    }
  }

  /// The number of imports between two progress reports. A shorter restore reports no progress.
  private static let progressStep = 256

  /// Checks that a plan without changes still changes nothing.
  private static func checkUnchanged(_ plan: MigrationPlan, on session: DeviceSession) throws(KeyhaulError) {
    try session.requireWriting()
    let store = try session.keychain
    var items: [IncomingItem] = []
    for planned in plan.imports { items.append(try plan.incoming(planned)) }
    guard try store.importsChangeNothing(items, keys: session.classKeys) else {
      throw .stalePlan("an existing item has changed")
    }
  }

  /// Returns all rows of a device's keychain, for every user.
  static func targetRows(of session: DeviceSession) throws(KeyhaulError) -> [TargetRow] {
    let store = try session.keychain
    var rows: [TargetRow] = []
    try store.forEachRowOfEveryUser(keys: session.classKeys) { (row) throws(KeyhaulError) in
      rows.append(try TargetRow(row))
    }
    return rows
  }
}
