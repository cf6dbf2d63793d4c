import KeyhaulKit
import Reports

extension BackupUnlocker {
  /// Returns the first available of these hardware keys for decrypting the backup, with the next one as its fallback:
  ///
  /// 1. the key that the user gave
  /// 2. the key of the device with which the backup is compared
  /// 3. the key of the virtual device that claims to be the backup's source
  ///
  /// - Parameters:
  ///   - compared: The key of the device with which the backup is compared.
  ///   - target: The target of a restore, whose key is tried anyway.
  func hardwareKey(
    comparedWith compared: HardwareKey? = nil, excluding target: DeviceSession? = nil
  ) throws(CommandError) -> HardwareKey? {
    let comparedKey = try compared.map { (compared) throws(CommandError) in
      HardwareKey(compared.source, compared.key, fallback: try sourceDeviceKey(excluding: target))
    }
    guard let givenKey = try options.deviceKey(of: name, in: session) else {
      if let comparedKey { return comparedKey }
      return try sourceDeviceKey(excluding: target, isNeeded: true)
    }
    if let comparedKey { return HardwareKey(.given, givenKey, fallback: comparedKey) }
    return HardwareKey(.given, givenKey, fallback: try sourceDeviceKey(excluding: target))
  }

  /// Returns the hardware key to use: the given one, or a fallback if it decrypts none of the items that need a key.
  /// Warns if the user gave the wrong key.
  func usableKey(_ hardware: HardwareKey?, with key: BackupKey) -> HardwareKey? {
    guard let hardware, !hardware.isGuess || hardware.fallback != nil else { return hardware }
    // If the backup cannot be read at all, the caller reports that.
    guard let proof = try? proof(of: hardware, with: key), proof.isSameDevice == false else { return hardware }
    if !hardware.isGuess { warnAboutKeyOfOtherDevice() }
    return hardware.fallback.map { usableKey($0, with: key) } ?? hardware
  }

  /// Returns whether a hardware key decrypts items of the backup, and which.
  private func proof(
    of hardware: HardwareKey, with key: BackupKey
  ) throws(KeyhaulError) -> DeviceKeyEvidence {
    try archive.reader(with: key, deviceKey: hardware.key, for: .reading).hardware
  }

  func warnAboutKeyOfOtherDevice() {
    isGivenKeyOfOtherDevice = true
    session.warn(
      "the given device key does not belong to the source device of \(name)",
      why: "it decrypts none of the items that need a device key", try: "the 0x835 key of that device")
  }

  /// Reports whose key decrypted items, if the user did not name it.
  func reportDeviceKeySource(_ hardware: HardwareKey?) {
    guard let device = hardware?.homeDevice else { return }
    // Without a password, every class needs the hardware key.
    let items = archive.isEncrypted ? "this-device-only items" : "its items"
    session.info("\(UntrustedText.escaped(name)): \(items) were decrypted with the key of \(device)")
  }

  /// Returns the key of the virtual device that claims to be the backup's source.
  ///
  /// - Parameters:
  ///   - target: The target of a restore, which is not considered.
  ///   - isNeeded: Whether no other key is available, so that an unreadable key causes a warning.
  func sourceDeviceKey(
    excluding target: DeviceSession? = nil, isNeeded: Bool = false
  ) throws(CommandError) -> HardwareKey? {
    let reportUnreadable: (VirtualDevice, KeyhaulError) -> Void = isNeeded ? warnAboutUnreadableKey : { _, _ in }
    guard let openDevice = try sourceDevice(excluding: target, onUnreadable: reportUnreadable) else { return nil }
    defer { openDevice.invalidate() }
    guard let key = try? openDevice.deviceKey() else { return nil }
    let isPublished = (try? openDevice.isHardwareKeyPublished(knownSeeds: WellKnownSeeds.all)) == true
    return HardwareKey(.homeDirectory(name: openDevice.name, isPublished: isPublished), key)
  }

  private func warnAboutUnreadableKey(of device: VirtualDevice, _ error: KeyhaulError) {
    session.warn(
      "the key of \(device.name) cannot be read: this-device-only items in \(name) cannot be decrypted",
      why: "\(error.summary): \(error.reason)",
      try: error.code == .deviceBusy ? "run it again when no other process uses \(device.name)" : error.call,
      of: error.errno)
  }

  /// Returns an open session of the virtual device that claims to be the backup's source. The caller closes it.
  ///
  /// - Parameters:
  ///   - target: The target of a restore, which is not considered.
  ///   - onUnreadable: Called with each device that may be the source but cannot be read.
  func sourceDevice(
    excluding target: DeviceSession? = nil,
    onUnreadable: (VirtualDevice, KeyhaulError) -> Void = { _, _ in }
  ) throws(CommandError) -> DeviceSession? {
    guard let home = try? DeviceSet(of: session) else { return nil }
    do throws(KeyhaulError) {
      return try archive.sourceDevice(in: home, excluding: target, verb: session.commandName, onSkip: onUnreadable)
    } catch {
      throw CommandError(error, doing: "cannot look for the source device of \(name)")
    }
  }
}
