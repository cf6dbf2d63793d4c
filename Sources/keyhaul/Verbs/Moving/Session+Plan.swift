import ArchivedKeychain
import CommandSession
import KeychainFormats
import Migration
import VirtualDevice

extension Session {
  func plan(
    _ opened: OpenedArchive, of named: NamedArchive, onto device: DeviceSession, policy: ExistingItemPolicy,
    only indexes: Set<Int>? = nil
  ) throws(CommandFailure) -> MigrationPlan {
    do throws(MigrationError) {
      return try Restorer.plan(opened, onto: device, policy: policy, only: indexes)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(device.name)")
    }
  }
}
