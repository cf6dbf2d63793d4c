package import Basics
package import KeychainFormats

/// The content of a new backup.
package struct BackupContents: Sendable {
  /// The source device. Its identifier is required for the directory's name.
  package var device: BackupDevice
  /// The date of the backup, in the manifest and in all records.
  package var date: KeychainDate
  /// The keybag. `BackupWriter` requires its class keys.
  package var keybag: Keybag
  /// Whether the backup has a password, which determines the manifest and the format of files.
  package var isEncrypted: Bool
  /// Whether the device has a passcode, for the manifest.
  package var wasPasscodeSet: Bool
  /// The keychain, with items encrypted for the keybag.
  package var keychain: SealedKeychain
  /// The bundle identifiers of the device's apps.
  package var applications: [String]

  /// The keychain file's property list in memory.
  ///
  /// - Throws: The errors of `SealedKeychain.bytes()`.
  package var keychainFile: [UInt8] { get throws(KeyhaulError) { try keychain.bytes() } }

  /// Creates the content of a backup.
  package init(
    device: BackupDevice, date: KeychainDate, keybag: Keybag, isEncrypted: Bool, wasPasscodeSet: Bool,
    keychain: SealedKeychain, applications: [String] = []
  ) {
    self.device = device
    self.date = date
    self.keybag = keybag
    self.isEncrypted = isEncrypted
    self.wasPasscodeSet = wasPasscodeSet
    self.keychain = keychain
    self.applications = applications
  }

  /// Creates the content of a backup with a keychain file, whose items are encrypted for the keybag.
  package init(
    device: BackupDevice, date: KeychainDate, keybag: Keybag, isEncrypted: Bool, wasPasscodeSet: Bool,
    keychainFile: [UInt8], applications: [String] = []
  ) {
    self.init(
      device: device, date: date, keybag: keybag, isEncrypted: isEncrypted, wasPasscodeSet: wasPasscodeSet,
      keychain: SealedKeychain(keychainFile), applications: applications)
  }
}
