import KeyhaulKit

extension ArchiveUnlocker.OpenedForDevice {
  /// What a restore of it would do.
  ///
  /// - Parameters:
  ///   - indexes: The items to bring, by their places; `nil` for all.
  ///   - use: `.planning` where it is only looked at.
  func plan(
    onto device: DeviceSession, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: ArchiveUse = .restoring
  ) throws(CommandFailure) -> MigrationPlan {
    do throws(MigrationError) {
      return try Restorer.plan(archive, onto: device, policy: policy, only: indexes, for: use)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(device.name)")
    }
  }
}
