import Basics
import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// How long after the lock the keys of class A stay in memory.
  ///
  /// Source: Apple Platform Security, "Data Protection classes" (Complete Protection).
  public static let lockGrace = Duration.seconds(10)

  /// Locks the device as its side button does: apps are told at once, and the keys go ten seconds later, at the first
  /// use of the session after that, or in `finishLock`.
  ///
  /// The device's memory on disk loses the keys at once: where this process ends before the ten seconds are over, the
  /// device is locked. Unlocking within them keeps the keys. Nothing happens on a device that is not unlocked.
  /// - Throws: `.noPasscode`, `.notWritable`, `.io`.
  public func requestLock() throws(VirtualDeviceError) {
    try requireWriting()
    guard isPasscodeSet else {
      throw VirtualDeviceError(.noPasscode, name, "a device without a passcode cannot be locked")
    }
    guard state == .unlocked, lockDeadline == nil else { return }
    let bytes = try memoryAfterLock()
    try files.replace(DeviceFile.memory.path(in: directory), bytes)
    let deadline = environment.clock.now().adding(seconds: Double(Self.lockGrace.components.seconds))
    lockDeadline = deadline
    device.protectedData.tell(.willBecomeUnavailable(at: deadline))
  }

  /// Whether the device was locked and still has its keys.
  public var isLocking: Bool {
    settleLock()
    return lockDeadline != nil
  }

  /// Waits, by the device's clock, until the keys are gone. Returns at once where no lock was asked for.
  public func finishLock() {
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
    classKeys.drop(Self.droppedByLock)
    device.protectedData.tell(.didBecomeUnavailable)
  }

  private func memoryAfterLock() throws(VirtualDeviceError) -> [UInt8] {
    var keys = try reporting { () throws(DataProtectionError) in try ClassKeys(importing: try classKeys.exported()) }
    keys.drop(Self.droppedByLock)
    return try memory(of: keys)
  }
}
