import KeyhaulKit

extension ArchiveUnlocker {
  /// The hardware key to open the archive with: the one that the user gives, or else that of the device which the archive
  /// is compared with, or else that of a virtual device which calls itself the backup's maker. Each has those behind it in
  /// reserve, for a backup of which it opens nothing.
  ///
  /// - Parameter target: The device that the items should go to, whose own key is tried anyway.
  func hardwareKey(
    comparedWith compared: HardwareKey? = nil, besides target: DeviceSession? = nil
  ) throws(CommandFailure) -> HardwareKey? {
    let guessed = compared.map { HardwareKey($0.source, $0.key(), otherwise: makersKey(besides: target)) }
    guard let key = try options.deviceKey(of: name, in: session) else {
      return guessed ?? makersKey(besides: target, isNeeded: true)
    }
    return HardwareKey(.given, key, otherwise: guessed ?? makersKey(besides: target))
  }

  /// The hardware key to go on with, once the password's key is there to try it: where one opens none of the
  /// items that need it, the key that would be used without it takes its place; of one that the user gave that is said.
  func fitting(_ hardware: HardwareKey?, with key: borrowing ArchiveKey) -> HardwareKey? {
    guard let hardware, !hardware.isGuess || hardware.otherwise != nil else { return hardware }
    // What keeps the archive from being opened at all is told by whoever opens it.
    guard let proof = try? proof(of: hardware, with: key), proof.isSameDevice == false else { return hardware }
    if !hardware.isGuess { warnOfForeignKey() }
    return hardware.otherwise.map { fitting($0, with: key) } ?? hardware
  }

  private func proof(
    of hardware: HardwareKey, with key: borrowing ArchiveKey
  ) throws(ArchivedKeychainError) -> HardwareProof {
    try ArchivedItemReader(archive, key: key, deviceKey: hardware.key(), for: .reading).hardware
  }

  func warnOfForeignKey() {
    session.warn(
      "the given device key does not belong to the source device of \(name)",
      why: "it decrypts none of the items that need a device key", try: "the key 0x835 of that device")
  }

  /// Says whose key opened items, where the user did not name it.
  func tell(ofProven hardware: HardwareKey?) {
    guard let device = hardware?.homeDevice else { return }
    // Without a password the hardware binds every class.
    let items = archive.isEncrypted ? "this-device-only items" : "its items"
    session.note("\(HostileText.shown(name)): \(items) were decrypted with the key of \(device)")
  }

  /// The key of the device of the home directory that calls itself the backup's maker.
  ///
  /// - Parameter isNeeded: Whether there is no other key, so that one which cannot be read is missed, and this is said.
  func makersKey(besides target: DeviceSession? = nil, isNeeded: Bool = false) -> HardwareKey? {
    let told: (VirtualDevice, VirtualDeviceError) -> Void = isNeeded ? warn : { _, _ in }
    guard let openDevice = maker(besides: target, passedOver: told) else { return nil }
    defer { openDevice.end() }
    guard let key = try? openDevice.deviceKey() else { return nil }
    let isPublished = (try? openDevice.isHardwareKeyPublished(knownSeeds: PublishedSeeds.all)) == true
    return HardwareKey(.homeDirectory(name: openDevice.name, isPublished: isPublished), key)
  }

  private func warn(ofUnreadable device: VirtualDevice, _ error: VirtualDeviceError) {
    session.warn(
      "the key of \(device.name) cannot be read: this-device-only items in \(name) cannot be decrypted",
      why: "\(error.summary): \(error.reason)",
      try: error.code == .busy ? "run it again when no other process uses \(device.name)" : error.call)
  }

  /// The device of the home directory that calls itself the backup's maker, held for reading; the caller ends it.
  func maker(
    besides target: DeviceSession? = nil,
    passedOver: (VirtualDevice, VirtualDeviceError) -> Void = { _, _ in }
  ) -> DeviceSession? {
    guard let home = try? DeviceHome(of: session) else { return nil }
    return archive.maker(in: home, besides: target, verb: session.verb, passedOver: passedOver)
  }
}
