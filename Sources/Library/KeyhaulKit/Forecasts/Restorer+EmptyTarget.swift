import Backups
public import KeychainCrypto
import KeychainRules
import VirtualDevice

extension Restorer {
  /// Decides what restoring a backup of a device made now would do to a device that holds nothing: a new one, or the
  /// same one after it was erased. The positions are as for a target that there is; nothing can be carried out by it.
  ///
  /// - Parameters:
  ///   - forecast: What the backup would hold.
  ///   - deviceKey: The hardware key of that device.
  ///   - targetSyncs: Whether it synchronizes its keychain.
  /// - Throws: What opening the forecast's items reports.
  public static func plan(
    _ forecast: borrowing BackupForecast, ontoEmpty deviceKey: borrowing DeviceKey, targetSyncs: Bool = false
  ) throws(MigrationError) -> MigrationPlan {
    try forecast.plan(onto: [], openedWith: deviceKey, policy: .replace, targetSyncs: targetSyncs, for: .planning)
  }
}
