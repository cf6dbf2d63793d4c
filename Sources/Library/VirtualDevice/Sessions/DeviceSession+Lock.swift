public import Basics
public import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// The classes whose keys a lock drops: "when unlocked" and "when passcode set", and class A of files.
  ///
  /// Source: Apple Platform Security, "Data Protection classes".
  static let droppedByLock: [KeyClass] = [
    .fileComplete, .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
  ]

  /// Drops the keys that a lock drops, from the session and from the device's memory, as soon as whoever listens was
  /// told; `requestLock` leaves them ten seconds. Nothing happens on a device that is locked or was not unlocked yet.
  ///
  /// - Throws: `.noPasscode`: without a passcode nothing would keep anyone from unlocking it.
  public func lock() throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else {
      throw KeyhaulError(.noPasscode, name, "a device without a passcode cannot be locked")
    }
    guard state == .unlocked else { return }
    if lockDeadline == nil { device.protectedData.tell(.willBecomeUnavailable(at: environment.clock.now())) }
    lockDeadline = nil
    classKeys = classKeys.dropping(Self.droppedByLock)
    try storeMemory()
    device.protectedData.tell(.didBecomeUnavailable)
  }

  /// Unlocks with the passcode: all keys come into memory, and failed attempts are forgotten.
  ///
  /// The attempt is counted on disk before the passcode is tried, so that no crash gives a guess for nothing. Without a
  /// passcode the device is unlocked already and an empty one is right.
  ///
  /// - Throws: `.wrongPasscode`; `.erased` where it was the last attempt of a device that then erases itself;
  ///   `.noPasscode` where one is given and none is set.
  public func unlock(passcode: borrowing Secret) throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else {
      if passcode.isEmpty { return }
      throw KeyhaulError(.noPasscode, name, "a passcode was given, but none is set")
    }
    let keys = try attempt(passcode) { (keybag, hardware) throws(DataProtectionError) in
      try keybag.unlock(passcode: passcode, hardware: hardware, progress: environment.derivation)
    }
    var change = DeviceChange()
    change.replace(.memory, with: try memory(of: keys))
    var forgiven = record
    forgiven.failedAttempts = 0
    change.replace(.record, with: forgiven.encoded())
    try carryOut(change)
    let wasUnlocked = state == .unlocked
    record = forgiven
    classKeys = keys
    lockDeadline = nil
    if !wasUnlocked { device.protectedData.tell(.didBecomeAvailable) }
  }

  /// Turns the device off and on: its memory is gone. Without a passcode it comes up unlocked.
  public func restart() throws(KeyhaulError) {
    try requireWriting()
    lockDeadline = nil
    if isPasscodeSet {
      let keys = try reporting(about: name) { () throws(DataProtectionError) in
        try keybag.unlockBeforeFirstUnlock(hardware: hardware)
      }
      try files.remove(DeviceFile.memory.path(in: directory))
      classKeys = keys
      try files.committed { () throws(KeyhaulError) in try files.syncDirectory(directory) }
    } else {
      let keys = try reporting(about: name) { () throws(DataProtectionError) in
        try keybag.unlock(passcode: Secret(utf8: ""), hardware: hardware, progress: environment.derivation)
      }
      classKeys = keys
      try storeMemory()
    }
  }

  /// Counts the attempt, makes it, and erases the device where it was wrong once too often.
  ///
  /// An attempt that was begun as the last one and never answered counts as failed. One that is stopped before its last
  /// round has told nothing about the passcode, and does not count.
  func attempt<Value: ~Copyable>(
    _ passcode: borrowing Secret,
    _ body: (SystemKeybag, borrowing HardwareUID) throws(DataProtectionError) -> Value
  ) throws(KeyhaulError) -> Value {
    try eraseIfExhausted()
    let before = record
    var counted = record
    counted.failedAttempts = min(record.failedAttempts, Int(Int32.max)) + 1
    try files.uncommitted { () throws(KeyhaulError) in try store(counted) }
    do throws(DataProtectionError) {
      return try body(keybag, hardware)
    } catch {
      if error.code == .cancelled { try store(before) }
      guard error.code == .wrongPasscode else { throw KeyhaulError(error).with(subject: name) }
      try eraseIfExhausted()
      throw KeyhaulError(.wrongPasscode, name, wrongPasscodeReason)
    }
  }

  private func eraseIfExhausted() throws(KeyhaulError) {
    guard let limit = record.eraseAfterFailures, record.failedAttempts >= limit else { return }
    let reason = "it is set to do so after \(limit) wrong passcodes in a row"
    do throws(KeyhaulError) {
      try erase()
    } catch {
      // Whoever tried the passcode did not ask for it; that the device is erased is the news all the same.
      guard error.stage == .afterCommit else { throw error }
      throw KeyhaulError(.erased, name, "\(reason); \(error.reason)")
    }
    throw KeyhaulError(.erased, name, reason)
  }

  private var wrongPasscodeReason: String {
    let count = record.failedAttempts
    let attempts = "\(count) wrong passcode\(count == 1 ? "" : "s") in a row"
    guard let limit = record.eraseAfterFailures else { return attempts }
    return "\(attempts); after \(limit) the device erases itself"
  }

  func memory(of keys: ClassKeys) throws(KeyhaulError) -> [UInt8] {
    try reporting(about: name) { () throws(DataProtectionError) in try DeviceMemory.sealed(keys, with: hardware) }
  }

  private func storeMemory() throws(KeyhaulError) {
    do throws(KeyhaulError) {
      let bytes = try memory(of: classKeys)
      try files.replace(DeviceFile.memory.path(in: directory), bytes)
    } catch {
      end()
      throw error
    }
  }
}

extension DeviceSession {
  /// How long after the lock the keys of class A stay in memory.
  ///
  /// Source: Apple Platform Security, "Data Protection classes" (Complete Protection).
  package static let lockGrace = Duration.seconds(10)

  /// Locks the device as its side button does: apps are told at once, and the keys go ten seconds later, at the first
  /// use of the session after that, or in `finishLock`.
  ///
  /// The device's memory on disk loses the keys at once: where this process ends before the ten seconds are over, the
  /// device is locked. Unlocking within them keeps the keys. Nothing happens on a device that is not unlocked.
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
    device.protectedData.tell(.willBecomeUnavailable(at: deadline))
  }

  /// Whether the device was locked and still has its keys.
  package var isLocking: Bool {
    settleLock()
    return lockDeadline != nil
  }

  /// Waits, by the device's clock, until the keys are gone. Returns at once where no lock was asked for.
  package func finishLock() {
    settleLock()
    guard let lockDeadline else { return }
    let rest = lockDeadline.secondsSinceReferenceDate - environment.clock.now().secondsSinceReferenceDate
    environment.clock.sleep(.seconds(rest))
    dropLockedKeys()
  }

  /// Drops the keys where their time is over. Called before anything is done with them.
  func settleLock() {
    guard let lockDeadline, environment.clock.now() >= lockDeadline else { return }
    dropLockedKeys()
  }

  func dropLockedKeys() {
    lockDeadline = nil
    classKeys = classKeys.dropping(Self.droppedByLock)
    device.protectedData.tell(.didBecomeUnavailable)
  }

  private func memoryAfterLock() throws(KeyhaulError) -> [UInt8] {
    try memory(of: classKeys.dropping(Self.droppedByLock))
  }
}
