import KeyhaulKit
import Reports

extension BackupUnlocker {
  /// Returns the accounts that authenticator apps keep in files. If the files cannot be read, returns no accounts,
  /// because the plan does not depend on them.
  private func accounts(with key: BackupKey) -> AuthenticatorAccounts {
    guard let items = try? archive.reader(with: key, for: .reading),
      let accounts = try? AuthenticatorAccounts(
        in: archive, items, installed: InstalledApps.names(in: archive).keys)
    else { return AuthenticatorAccounts() }
    return accounts
  }

  /// Returns where a decrypted backup has one-time passwords.
  func oneTimePasswords(of opened: UnlockedBackup, with key: BackupKey) -> OneTimePasswordSources {
    OneTimePasswordSources(items: opened.items, accounts: accounts(with: key))
  }

  /// A backup that was decrypted for a new device and for its source device.
  struct BackupForOutlook {
    let backup: UnlockedBackup
    let restoreOutlook: RestoreOutlook
    /// The device whose key was tried, as its name or "the device whose key was given"; `nil` if no key was tried.
    let deviceKeyOwner: String?
    let oneTimePasswords: OneTimePasswordSources
  }

  /// Decrypts the backup as a new device would. If the source device's key is available, also decrypts it as the source
  /// device would.
  ///
  /// - Parameters:
  ///   - key: The key that was derived from the password.
  ///   - candidate: The device key that the user gave, or a key that may be the source device's.
  ///   - named: The source device that the user named; `nil` if the user named none.
  func decryptForOutlook(
    with key: BackupKey, _ candidate: DeviceKeyCandidate?, sourceDevice named: DeviceSession?
  ) throws -> BackupForOutlook {
    let opened = try open(with: key, deviceKey: nil, for: .planning)
    let sourceDevice = try sourceDevice(of: opened, named: named, orTarget: nil, with: key)
    var openedWithDeviceKey = sourceDevice?.unlockedBackup
    var keyOwner = sourceDevice?.name
    if let givenKey = usableKey(candidate, with: key), !givenKey.isGuess {
      openedWithDeviceKey = try? archive.open(with: key, deviceKey: givenKey.key, for: .planning)
      keyOwner = "the device whose key was given"
    }
    let oneTimePasswords = oneTimePasswords(of: openedWithDeviceKey ?? opened, with: key)
    do throws(KeyhaulError) {
      return BackupForOutlook(
        backup: opened,
        restoreOutlook: try RestoreOutlook(
          of: opened, unlockedWithDeviceKey: openedWithDeviceKey, sourceDeviceItems: sourceDevice?.items),
        deviceKeyOwner: keyOwner, oneTimePasswords: oneTimePasswords)
    } catch {
      throw CommandError(error, failedAction: "cannot plan for \(name)")
    }
  }
}
