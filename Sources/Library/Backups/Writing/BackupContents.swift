public import Basics
public import KeychainFormats

/// What goes into a backup that is about to be written.
public struct BackupContents: Sendable {
  /// Its identifier is needed: it names the backup's directory.
  public var device: BackupDevice
  /// When the backup is made; it stands in the manifest and in every file's record.
  public var date: KeychainDate
  /// Goes into the backup as it is; the class keys that `BackupWriter` is given have to be this bag's.
  public var keybag: Keybag
  /// Whether it has a password; the manifest and the files' form follow from it.
  public var isEncrypted: Bool
  /// Whether the device has a passcode, which the manifest says.
  public var wasPasscodeSet: Bool
  /// The keychain, its items sealed under the keybag.
  public var keychain: SealedKeychain
  /// Bundle identifiers of the apps on the device.
  public var applications: [String]

  /// The keychain file's property list, in memory.
  ///
  /// - Throws: As `SealedKeychain.bytes()`.
  public var keychainFile: [UInt8] { get throws(BackupArchiveError) { try keychain.bytes() } }

  /// Creates the contents of one backup.
  public init(
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

  /// The same with the keychain file's property list, its items sealed under the keybag.
  public init(
    device: BackupDevice, date: KeychainDate, keybag: Keybag, isEncrypted: Bool, wasPasscodeSet: Bool,
    keychainFile: [UInt8], applications: [String] = []
  ) {
    self.init(
      device: device, date: date, keybag: keybag, isEncrypted: isEncrypted, wasPasscodeSet: wasPasscodeSet,
      keychain: SealedKeychain(keychainFile), applications: applications)
  }
}
