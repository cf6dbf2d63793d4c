import KeyhaulKit
import Reports

extension BackupUnlocker {
  /// Returns the device key to try first when decrypting the backup, with the other available keys as fallbacks. The
  /// order is:
  ///
  /// 1. the key that the user gave
  /// 2. the key of the device that the user compares with the backup
  /// 3. the key of the virtual device with the identifier that the backup states
  ///
  /// - Parameters:
  ///   - comparedDeviceKey: The key of the device that the user compares with the backup.
  ///   - target: The target of a restore. Its key is left out, because the restore tries it in any case.
  /// - Returns: The key; `nil` if none is available.
  func deviceKey(
    comparedDeviceKey: DeviceKeyCandidate? = nil, excluding target: DeviceSession? = nil
  ) throws(CommandError) -> DeviceKeyCandidate? {
    let comparedKey = try comparedDeviceKey.map { (comparedDeviceKey) throws(CommandError) in
      DeviceKeyCandidate(
        comparedDeviceKey.source, comparedDeviceKey.key, fallback: try sourceDeviceKey(excluding: target))
    }
    guard let givenKey = try options.deviceKey(of: name, in: session) else {
      if let comparedKey { return comparedKey }
      return try sourceDeviceKey(excluding: target, isNeeded: true)
    }
    if let comparedKey { return DeviceKeyCandidate(.given, givenKey, fallback: comparedKey) }
    return DeviceKeyCandidate(.given, givenKey, fallback: try sourceDeviceKey(excluding: target))
  }

  /// Returns the device key to use. This is the candidate, unless the candidate belongs to another device and has a
  /// fallback. Warns if the user gave a key of another device.
  ///
  /// - Parameters:
  ///   - candidate: A device key with its fallbacks; `nil` if no key is available.
  ///   - backupKey: The key of the backup's password.
  func usableKey(_ candidate: DeviceKeyCandidate?, with backupKey: BackupKey) -> DeviceKeyCandidate? {
    // A key that Keyhaul found itself is used in any case if it has no fallback, so it is not checked.
    guard let candidate, !candidate.isGuess || candidate.fallback != nil else { return candidate }
    // If the backup cannot be read at all, the caller reports that.
    guard let evidence = try? deviceKeyEvidence(for: candidate, with: backupKey), evidence.isSameDevice == false else {
      return candidate
    }
    if !candidate.isGuess { warnAboutKeyOfOtherDevice() }
    return candidate.fallback.map { usableKey($0, with: backupKey) } ?? candidate
  }

  /// Returns the evidence about a device key: the classes whose items it decrypts.
  private func deviceKeyEvidence(
    for candidate: DeviceKeyCandidate, with backupKey: BackupKey
  ) throws(KeyhaulError) -> DeviceKeyEvidence {
    try archive.reader(with: backupKey, deviceKey: candidate.key, for: .reading).hardware
  }

  /// Warns that the key that the user gave is not the source device's, and records this for the result of `verify`.
  func warnAboutKeyOfOtherDevice() {
    isGivenKeyOfOtherDevice = true
    session.warn(
      "the given device key does not belong to the source device of \(name)",
      why: "it decrypts none of the items that need a device key", try: "the 0x835 key of that device")
  }

  /// Reports which virtual device's key decrypted items, if Keyhaul found that device itself.
  func reportDeviceKeySource(_ usedKey: DeviceKeyCandidate?) {
    guard let device = usedKey?.virtualDeviceName else { return }
    // In a backup without a password, the device key wraps every class key, so all items need it.
    let items = archive.isEncrypted ? "this-device-only items" : "its items"
    session.info("\(UntrustedText.escaped(name)): \(items) were decrypted with the key of \(device)")
  }

  /// Returns the device key of the virtual device with the identifier that the backup states.
  ///
  /// - Parameters:
  ///   - target: The target of a restore. If it has that identifier, no key is returned.
  ///   - isNeeded: Whether no other key is available. Keyhaul then warns if the device's key cannot be read.
  /// - Returns: The key; `nil` if there is no such device or its key cannot be read.
  func sourceDeviceKey(
    excluding target: DeviceSession? = nil, isNeeded: Bool = false
  ) throws(CommandError) -> DeviceKeyCandidate? {
    let reportUnreadable: (VirtualDevice, KeyhaulError) -> Void = isNeeded ? warnAboutUnreadableKey : { _, _ in }
    guard let openDevice = try sourceDevice(excluding: target, onUnreadable: reportUnreadable) else { return nil }
    defer { openDevice.invalidate() }
    guard let key = try? openDevice.deviceKey() else { return nil }
    let isPublished = (try? openDevice.isDeviceKeyPublished(knownSeeds: WellKnownSeeds.all)) == true
    return DeviceKeyCandidate(.deviceFolder(name: openDevice.name, isPublished: isPublished), key)
  }

  /// Warns that the source device's key cannot be read, so that some items stay encrypted.
  private func warnAboutUnreadableKey(of device: VirtualDevice, _ error: KeyhaulError) {
    session.warn(
      "the key of \(device.name) cannot be read: this-device-only items in \(name) cannot be decrypted",
      why: "\(error.summary): \(error.reason)",
      try: error.code == .deviceBusy
        ? "run it again when no other process uses \(device.name)" : error.commandLineAdvice,
      of: error.errno)
  }

  /// Opens the virtual device with the identifier that the backup states. The caller invalidates the session.
  ///
  /// - Parameters:
  ///   - target: The target of a restore. It is already open, so it is not opened as the source device.
  ///   - onUnreadable: Called with each device that has the identifier but whose key cannot be read.
  /// - Returns: The session; `nil` if there is no such device or it cannot be read.
  func sourceDevice(
    excluding target: DeviceSession? = nil,
    onUnreadable: (VirtualDevice, KeyhaulError) -> Void = { _, _ in }
  ) throws(CommandError) -> DeviceSession? {
    // Without a device folder, there are no virtual devices.
    guard let devices = try? DeviceSet(of: session) else { return nil }
    do throws(KeyhaulError) {
      return try archive.sourceDevice(
        in: devices, excluding: target, command: session.commandName, onSkip: onUnreadable)
    } catch {
      throw CommandError(error, failedAction: "cannot look for the source device of \(name)")
    }
  }
}
