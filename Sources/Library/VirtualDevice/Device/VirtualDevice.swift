import Basics
import KeychainCrypto
import KeychainFormats

/// A simulated iPhone: a directory with its identity, its hardware key, its keybag, its memory and its keychain.
///
/// This value only says where the device is; a `DeviceSession` holds it and does things.
public struct VirtualDevice: Sendable {
  /// The device's name in its home.
  public let name: DeviceName
  /// The device's directory.
  package let directory: String
  /// The time, the randomness and the file system that its sessions use.
  package let environment: DeviceEnvironment

  /// Writes the files of a new device into its directory, which is empty.
  func initialize(_ options: DeviceOptions, passcode: borrowing Secret) throws(KeyhaulError) {
    let files = environment.files
    // In this order: `DeviceFixture.publishedHardware` draws the same bytes.
    let record = try DeviceRecord(name: name, options, environment)
    try record.requireRoom()
    let hardware = try reporting(about: name.text) { () throws(DataProtectionError) in
      try HardwareUID(from: environment.random)
    }
    let bag = try reporting(about: name.text) { () throws(DataProtectionError) in
      try SystemKeybag.make(
        passcode: passcode, hardware: hardware, rounds: environment.passcodeRounds, random: environment.random)
    }
    let memory = try reporting(about: name.text) { () throws(DataProtectionError) in
      try DeviceMemory.sealed(bag.classKeys, with: hardware)
    }
    try files.createHardware(hardware, in: directory)
    try files.create(DeviceFile.keybag.path(in: directory), bag.keybag.serialized())
    try files.create(DeviceFile.memory.path(in: directory), memory)
    try files.create(DeviceFile.record.path(in: directory), record.encoded())
    try DeviceKeychain(directory: directory, device: name.text, files: files).makeEmpty()
  }
}

extension DeviceRecord {
  /// The record of a new device: a new identifier and serial number.
  fileprivate init(
    name: DeviceName, _ options: DeviceOptions, _ environment: DeviceEnvironment
  ) throws(KeyhaulError) {
    if let limit = options.eraseAfterFailures, limit < 1 {
      throw KeyhaulError(.badLimit, name.text, "it would erase itself after \(limit) wrong passcodes")
    }
    (udid, serialNumber) = try reporting(about: name.text) { () throws(DataProtectionError) in
      (try DeviceIdentity.randomUDID(environment.random), try DeviceIdentity.randomSerialNumber(environment.random))
    }
    self.name = name.text
    productType = options.identity.productType
    productVersion = options.identity.productVersion
    build = options.identity.build
    created = environment.clock.now()
    isSyncing = options.isSyncing
    eraseAfterFailures = options.eraseAfterFailures
    failedAttempts = 0
    lastBackup = nil
    revisionCounter = 1
    apps = options.apps
    hasPublishedHardwareKey = options.hasPublishedHardwareKey
  }
}

/// Which keys of a device are in memory. The raw value is the one of machine-readable output.
package enum DeviceState: String, Sendable, CaseIterable, Hashable {
  /// All class keys.
  case unlocked
  /// Those of "after first unlock" and "always".
  case locked
  /// Those of "always" alone, as after a restart.
  case beforeFirstUnlock = "before-first-unlock"
}

/// What a new device shall be like.
public struct DeviceOptions: Sendable {
  /// The model and the version of iOS.
  package var identity: DeviceIdentity
  /// The installed apps, with their access groups.
  package var apps: [DeviceApp]
  /// After how many wrong passcodes in a row it erases itself; `nil` for never.
  package var eraseAfterFailures: Int?
  /// True where iCloud Keychain is on: a deleted synchronized item leaves a tombstone then.
  package var isSyncing: Bool
  /// Whether its hardware key is one that everybody can compute; the randomness it is made with decides that.
  var hasPublishedHardwareKey = false

  /// After how many failures iOS erases a device that is set to do so.
  public static let standardEraseAfterFailures = 10

  /// Creates options; by default an iPhone without apps that never erases itself and does not synchronize.
  public init(
    identity: DeviceIdentity = DeviceIdentity(), apps: [DeviceApp] = [], eraseAfterFailures: Int? = nil,
    isSyncing: Bool = false
  ) {
    self.identity = identity
    self.apps = apps
    self.eraseAfterFailures = eraseAfterFailures
    self.isSyncing = isSyncing
  }
}
