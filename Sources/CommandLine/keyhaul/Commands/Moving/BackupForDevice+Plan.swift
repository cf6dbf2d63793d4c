import KeyhaulKit

extension BackupUnlocker.BackupForDevice {
  /// Plans a restore of the backup.
  ///
  /// - Parameters:
  ///   - target: The target of the restore.
  ///   - policy: The treatment of the target's existing items.
  ///   - indexes: The indexes of the items to restore; `nil` to restore all.
  ///   - use: Decides which damage is an error. `.planning` if the plan is only shown, and not carried out.
  func plan(
    onto target: RestoreTarget, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(CommandError) -> MigrationPlan {
    do throws(KeyhaulError) {
      return try Restorer.plan(backup, onto: target, policy: policy, only: indexes, for: use)
    } catch {
      throw CommandError(error, failedAction: "cannot plan for \(target.name)")
    }
  }
}
