public import Basics
public import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// The classes whose keys a lock removes: "when unlocked", "when passcode set", and class A of files.
  ///
  /// Source: Apple Platform Security, "Data Protection classes".
  static let classesDroppedByLock: [KeyClass] = [
    .fileComplete, .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
  ]

  /// Locks the device and removes the keys immediately, after notifying observers. In contrast, the side
  /// button (`requestLock`) leaves ten seconds. A device that is locked or was not unlocked yet does not change.
  ///
  /// - Throws: `.noPasscode`, because a device without a passcode cannot be locked; `.deviceNotWritable` if the session
  ///   was opened for reading or has ended; `.deviceIO` if a file operation fails.
  public func lock() throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else {
      throw KeyhaulError(.noPasscode, name, "a device without a passcode cannot be locked")
    }
    guard state == .unlocked else { return }
    if lockDeadline == nil { device.protectedData.notify(.willBecomeUnavailable(at: environment.clock.now())) }
    lockDeadline = nil
    classKeys = classKeys.dropping(Self.classesDroppedByLock)
    try storeMemory()
    device.protectedData.notify(.didBecomeUnavailable)
  }

  /// Unlocks the device with the passcode: all keys are in memory, and the count of failed attempts is reset.
  ///
  /// The attempt is counted on disk before the passcode is tried, so that a crash cannot be used for additional
  /// attempts. A device without a passcode is already unlocked and accepts an empty passcode.
  ///
  /// - Throws: `.wrongPasscode`; `.erased` if the device erased itself after the last allowed attempt; `.noPasscode` if
  ///   a passcode is given but none is set; `.deviceNotWritable` if the session was opened for reading or has ended;
  ///   `.deviceIO` if a file operation fails.
  public func unlock(passcode: borrowing Secret) throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else {
      if passcode.isEmpty { return }
      throw KeyhaulError(.noPasscode, name, "a passcode was given, but none is set")
    }
    let keys = try makePasscodeAttempt { (keybag, hardware) throws(DataProtectionError) in
      try keybag.unlock(passcode: passcode, hardware: hardware, progress: environment.derivation)
    }
    var change = DeviceChange()
    change.replace(.memory, with: try memory(of: keys))
    var newRecord = record
    newRecord.failedAttempts = 0
    change.replace(.record, with: newRecord.encoded())
    try apply(change)
    let wasUnlocked = state == .unlocked
    record = newRecord
    classKeys = keys
    lockDeadline = nil
    if !wasUnlocked { device.protectedData.notify(.didBecomeAvailable) }
  }

  /// Restarts the device, which clears its memory. A device without a passcode is unlocked afterwards.
  ///
  /// - Throws: `.deviceNotWritable` if the session was opened for reading or has ended; `.deviceIO` if a file operation
  ///   fails.
  public func restart() throws(KeyhaulError) {
    try requireWriting()
    lockDeadline = nil
    if isPasscodeSet {
      let keys = try translatingErrors(about: name) { () throws(DataProtectionError) in
        try keybag.unlockBeforeFirstUnlock(hardware: hardware)
      }
      try files.remove(DeviceFile.memory.path(in: directory))
      classKeys = keys
      try files.afterCommit { () throws(KeyhaulError) in try files.syncDirectory(directory) }
    } else {
      let keys = try translatingErrors(about: name) { () throws(DataProtectionError) in
        try keybag.unlock(passcode: Secret(utf8: ""), hardware: hardware, progress: environment.derivation)
      }
      classKeys = keys
      try storeMemory()
    }
  }

  func memory(of keys: ClassKeys) throws(KeyhaulError) -> [UInt8] {
    try translatingErrors(about: name) { () throws(DataProtectionError) in
      try DeviceMemory.wrapped(keys, with: hardware)
    }
  }

  private func storeMemory() throws(KeyhaulError) {
    do throws(KeyhaulError) {
      let bytes = try memory(of: classKeys)
      try files.replace(DeviceFile.memory.path(in: directory), bytes)
    } catch {
      invalidate()
      throw error
    }
  }
}

extension DeviceSession {
  /// The time after a lock during which the keys of class A stay in memory.
  ///
  /// Source: Apple Platform Security, "Data Protection classes" (Complete Protection).
  package static let lockGrace = Duration.seconds(10)

  /// Locks the device like its side button: observers are notified immediately, and the keys are removed after ten
  /// seconds, at the next use of the session or in `waitForLock`.
  ///
  /// The memory on disk loses the keys immediately, so that the device is locked if this process ends within the ten
  /// seconds. Unlocking within that time keeps the keys. A device that is not unlocked does not change.
  ///
  /// - Throws: `.noPasscode`, `.deviceNotWritable`, `.deviceIO`.
  package func requestLock() throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else {
      throw KeyhaulError(.noPasscode, name, "a device without a passcode cannot be locked")
    }
    guard state == .unlocked, lockDeadline == nil else { return }
    let bytes = try memoryAfterLock()
    try files.replace(DeviceFile.memory.path(in: directory), bytes)
    let deadline = environment.clock.now().adding(seconds: Double(Self.lockGrace.components.seconds))
    lockDeadline = deadline
    device.protectedData.notify(.willBecomeUnavailable(at: deadline))
  }

  /// Whether the device was locked but still has its keys.
  package var isLocking: Bool {
    applyPendingLock()
    return lockDeadline != nil
  }

  /// Waits, by the device's clock, until the keys are removed. Returns immediately if no lock was requested.
  package func waitForLock() {
    applyPendingLock()
    guard let lockDeadline else { return }
    let remainingSeconds = lockDeadline.secondsSinceReferenceDate - environment.clock.now().secondsSinceReferenceDate
    environment.clock.sleep(.seconds(remainingSeconds))
    dropLockedKeys()
  }

  /// Removes the keys if the ten seconds after `requestLock` are over. Called before every use of the keys.
  func applyPendingLock() {
    guard let lockDeadline, environment.clock.now() >= lockDeadline else { return }
    dropLockedKeys()
  }

  func dropLockedKeys() {
    lockDeadline = nil
    classKeys = classKeys.dropping(Self.classesDroppedByLock)
    device.protectedData.notify(.didBecomeUnavailable)
  }

  private func memoryAfterLock() throws(KeyhaulError) -> [UInt8] {
    try memory(of: classKeys.dropping(Self.classesDroppedByLock))
  }
}
