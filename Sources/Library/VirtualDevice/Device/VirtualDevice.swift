import Basics
import KeychainCrypto
import KeychainFormats

/// A simulated iPhone: a folder with its identity, hardware UID, keybag, memory and keychain.
///
/// This value only locates the device. Use a `DeviceSession` to read or change it.
public struct VirtualDevice: Sendable {
  /// The device's name in its folder of devices.
  public let name: DeviceName
  /// The path of the device's folder.
  package let directory: String
  /// The clock, the randomness and the file system of all sessions.
  package let environment: DeviceEnvironment

  /// Writes the files of a new device to its empty folder.
  func initialize(_ options: DeviceOptions, passcode: borrowing Secret) throws(KeyhaulError) {
    let files = environment.files
    // `DeviceFixture.publishedHardware` depends on this order of random values.
    let record = try DeviceRecord(name: name, options, environment)
    try record.requireAcceptableSize()
    let hardware = try translatingErrors(about: name.text) { () throws(DataProtectionError) in
      try HardwareUID(from: environment.random)
    }
    let keybag = try translatingErrors(about: name.text) { () throws(DataProtectionError) in
      try SystemKeybag.make(
        passcode: passcode, hardware: hardware, rounds: environment.passcodeRounds, random: environment.random)
    }
    let memory = try translatingErrors(about: name.text) { () throws(DataProtectionError) in
      try DeviceMemory.wrapped(keybag.classKeys, with: hardware)
    }
    try files.createHardware(hardware, in: directory)
    try files.create(DeviceFile.keybag.path(in: directory), keybag.keybag.serialized())
    try files.create(DeviceFile.memory.path(in: directory), memory)
    try files.create(DeviceFile.record.path(in: directory), record.encoded())
    try DeviceKeychain(directory: directory, device: name.text, files: files).createEmpty()
  }
}

extension DeviceRecord {
  /// Creates the record of a new device, with a new identifier and serial number.
  fileprivate init(
    name: DeviceName, _ options: DeviceOptions, _ environment: DeviceEnvironment
  ) throws(KeyhaulError) {
    if let limit = options.eraseAfterFailures, limit < 1 {
      throw KeyhaulError(.badLimit, name.text, "it would erase itself after \(limit) wrong passcodes")
    }
    (udid, serialNumber) = try translatingErrors(about: name.text) { () throws(DataProtectionError) in
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
    hasPublishedDeviceKey = options.hasPublishedDeviceKey
  }
}

/// The lock state of a device, which is defined by the class keys in its memory. The raw value is used in
/// machine-readable output.
package enum DeviceState: String, Sendable, CaseIterable, Hashable {
  /// All class keys are in memory.
  case unlocked
  /// The keys of "after first unlock" and "always" are in memory.
  case locked
  /// Only the keys of "always" are in memory, as after a restart.
  case beforeFirstUnlock = "before-first-unlock"
}

/// The properties of a new device.
public struct DeviceOptions: Sendable {
  /// The model and the iOS version.
  package var identity: DeviceIdentity
  /// The installed apps.
  package var apps: [DeviceApp]
  /// The number of consecutive wrong passcodes after which the device erases itself, or `nil` if it never does.
  package var eraseAfterFailures: Int?
  /// Whether iCloud Keychain is on. If it is, a deleted synchronized item leaves a tombstone.
  package var isSyncing: Bool
  /// Whether anyone can compute the device key, because the device is created with published randomness.
  var hasPublishedDeviceKey = false

  /// The number of wrong passcodes after which iOS erases a device that is set to do so.
  public static let standardEraseAfterFailures = 10

  /// Creates options. The default is an iPhone without apps that never erases itself and does not synchronize.
  ///
  /// - Parameters:
  ///   - identity: The model and the iOS version.
  ///   - apps: The installed apps. `KeychainClient.onNewDevice` adds the client's app.
  ///   - eraseAfterFailures: The number of consecutive wrong passcodes after which the device erases itself, at least
  ///     1; `nil` if it never does.
  ///   - isSyncing: Whether iCloud Keychain is on. If it is, a deleted synchronized item leaves a tombstone.
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
