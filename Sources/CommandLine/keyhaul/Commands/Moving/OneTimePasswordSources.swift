import KeyhaulKit
import Reports

/// The items and accounts in which a plan counts one-time passwords.
struct OneTimePasswordSources {
  /// All items, also those without a one-time password.
  let items: [BackupItem]
  /// The accounts in the files of authenticator apps.
  let accounts: AuthenticatorAccounts

  init(items: [BackupItem], accounts: AuthenticatorAccounts) {
    self.items = items
    self.accounts = accounts
  }

  /// Creates the sources for a virtual device's simulated backup. They contain no accounts, because a virtual device
  /// stores no app files.
  init(of simulatedBackup: SimulatedBackup, on device: DeviceSession) throws(CommandError) {
    accounts = AuthenticatorAccounts()
    do throws(KeyhaulError) {
      items = try simulatedBackup.items(openedWith: try device.deviceKey())
    } catch {
      throw CommandError(error, using: device.name)
    }
  }

  /// Counts each app's one-time passwords, and how many of them a plan moves.
  ///
  /// - Parameters:
  ///   - plan: The plan, which decides for each item whether it moves.
  ///   - names: The names of the apps.
  func overview(for plan: MigrationPlan, names: AppDirectory) -> OneTimePasswordOverview {
    let movingIndexes = plan.decisions.filter { $0.outcome.fate == .migrates }.map(\.index)
    return OneTimePasswordOverview(items, moving: Set(movingIndexes), accounts, names: names)
  }
}
