import KeyhaulKit
import Reports

/// The items and files that may contain one-time passwords.
struct OneTimePasswordSources {
  let items: [BackupItem]
  let accounts: AuthenticatorAccounts

  init(items: [BackupItem], accounts: AuthenticatorAccounts) {
    self.items = items
    self.accounts = accounts
  }

  /// Creates the sources of a backup that a device would make. A virtual device has no files of apps.
  init(of simulatedBackup: SimulatedBackup, on device: DeviceSession) throws(CommandError) {
    accounts = AuthenticatorAccounts()
    do throws(KeyhaulError) {
      items = try simulatedBackup.items(openedWith: try device.deviceKey())
    } catch {
      throw CommandError(error, using: device.name)
    }
  }

  /// Returns the numbers of one-time passwords.
  ///
  /// - Parameter plan: The plan that decides which items move.
  func overview(moving plan: MigrationPlan, names: AppDirectory) -> OneTimePasswordOverview {
    let movingIndexes = plan.decisions.filter { $0.outcome.fate == .migrates }.map(\.index)
    return OneTimePasswordOverview(items, moving: Set(movingIndexes), accounts, names: names)
  }
}
