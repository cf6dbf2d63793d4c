import CommandArguments
import CommandSession
import KeychainFormats
import Migration
import VirtualDevice

extension ArchiveUnlocker.OpenedForDevice {
  /// What a restore of it would do.
  ///
  /// - Parameter indexes: The items to bring, by their places; `nil` for all.
  func plan(
    onto device: DeviceSession, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil
  ) throws(CommandFailure) -> MigrationPlan {
    do throws(MigrationError) {
      return try Restorer.plan(archive, onto: device, policy: policy, only: indexes)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(device.name)")
    }
  }
}
