public import Basics
public import KeychainCrypto
import KeychainFormats
package import Keychains

/// A process's access to a device: its identity, the class keys in memory, and its keychain.
///
/// Several processes can read at the same time. A process that writes has exclusive access. The access ends when the
/// closure of `VirtualDevice.withSession` ends, with `invalidate()`, with the last reference, or with the process. A
/// session must be used from one thread.
///
/// A change survives the death of the process once the call returns, and a power failure once `withSession` returns.
/// A session waits for the disk once, regardless of the number of changes.
public final class DeviceSession {
  /// The device.
  public let device: VirtualDevice
  /// The kind of access.
  package let access: DeviceAccess
  /// The device's identity and counters, as stored.
  public internal(set) var record: DeviceRecord
  /// The class keys in the device's memory. They are used through this object and never copied.
  package internal(set) var classKeys: ClassKeys
  /// The date at which a requested lock of the device removes the class keys; `nil` unless a lock was requested.
  var lockDeadline: KeychainDate?
  var keybag: SystemKeybag
  let hardware: HardwareUID
  private var store: KeychainStore?
  /// The number of commits that belong to opening the keychain and change no item.
  private var openingCommitCount = 0
  private var fileLock: DeviceFileLock?
  /// Whether this session has stored a new revision.
  private var hasIncrementedRevision = false
  /// Whether this session has compared the keychain's indexes with its tables.
  private var hasCheckedIndexes = false
  /// Whether the record in memory has a later revision than the stored one.
  private var hasUnsavedRevision = false
  /// Whether items were changed through a keychain that has been closed since.
  private var hasChangedItems = false

  /// Opens a session.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - access: The kind of access.
  ///   - command: The command of this process, for the errors of other processes.
  ///   - wait: The maximum wait for another process.
  ///   - isCached: Whether the session is for the cache. Otherwise, the cached session is closed first.
  init(
    _ device: VirtualDevice, _ access: DeviceAccess, command: String, wait: Duration, isCached: Bool = false
  ) throws(KeyhaulError) {
    if !isCached { SessionCache.shared.close(of: device.directory) }
    let fileLock = try Self.acquireLock(of: device, access, command: command, wait: wait)
    let record = try Self.record(of: device)
    let hardware = try device.environment.files.readHardware(in: device.directory, device: device.name.text)
    let keybag = try Self.keybag(of: device)
    let keys = try Self.keys(of: device, keybag, hardware)
    self.device = device
    self.access = access
    self.record = record
    self.classKeys = keys
    self.keybag = keybag
    self.hardware = hardware
    self.fileLock = consume fileLock
  }

  deinit { invalidate() }

  /// Closes the session after all changes are on the disk. Closing again has no effect.
  ///
  /// - Throws: `.deviceIO` or an error of the keychain if changes may not be on the disk. If items were changed, the
  ///   error's `stage` is `.afterCommit`, because these changes remain. The session is closed regardless.
  package func close() throws(KeyhaulError) {
    defer { invalidate() }
    try synchronize()
  }

  /// Waits until all changes of the session are on the disk. The session stays open, but a keychain that was obtained
  /// before is closed.
  ///
  /// - Throws: `.deviceIO` or an error of the keychain if changes may not be on the disk. If items were changed, the
  ///   error's `stage` is `.afterCommit`, because these changes remain.
  package func synchronize() throws(KeyhaulError) {
    recordItemChanges()
    do throws(KeyhaulError) {
      if hasUnsavedRevision, fileLock != nil { try store(record) }
      try closeKeychain()
    } catch {
      guard hasChangedItems else { throw error.at(.beforeCommit) }
      throw error.at(.afterCommit, "until the change is on the disk, a power failure may undo it")
    }
  }

  private func closeKeychain() throws(KeyhaulError) {
    guard let store else { return }
    recordItemChanges()
    self.store = nil
    try store.close()
  }

  private func recordItemChanges() {
    if let store, store.commitCount > openingCommitCount { hasChangedItems = true }
  }

  /// Closes the keychain, removes the keys from memory and releases the device. Errors are ignored, so for changes use
  /// `VirtualDevice.withSession`, which throws them.
  public func invalidate() {
    if hasUnsavedRevision, fileLock != nil { try? store(record) }
    try? store?.close()
    store = nil
    lockDeadline = nil
    classKeys = classKeys.dropping(classKeys.classes)
    fileLock = nil
  }

  // MARK: State of the device

  /// The device's name as text.
  public var name: String { device.name.text }
  var directory: String { device.directory }
  var files: DeviceFiles { device.environment.files }
  /// The time, the randomness and the file system of the device.
  package var environment: DeviceEnvironment { device.environment }

  /// Whether a passcode is set. The keybag then has a key of class 12.
  package var isPasscodeSet: Bool { keybag.isPasscodeSet }

  /// The lock state, according to the class keys in memory.
  package var state: DeviceState {
    applyPendingLock()
    if classKeys.hasKey(of: .whenUnlocked) { return .unlocked }
    return classKeys.hasKey(of: .afterFirstUnlock) ? .locked : .beforeFirstUnlock
  }

  /// Returns the key that encrypts device-bound items in backups: key 0x835 of the hardware.
  ///
  /// - Throws: `.underlying` if the cryptographic library fails.
  public func deviceKey() throws(KeyhaulError) -> DeviceKey {
    try translatingErrors(about: name) { () throws(DataProtectionError) in try hardware.deviceKey() }
  }

  // MARK: The keychain

  /// The keychain database. Use `changeItems` or `prepareItemChanges` for changes, which increase the revision. The
  /// database is closed at the end of the session, and its calls then throw.
  ///
  /// - Throws: `.deviceDamaged`, or an error of the keychain; `.deviceNotWritable` after the end of the session.
  package var keychain: KeychainStore {
    get throws(KeyhaulError) {
      guard fileLock != nil else { throw invalidatedError }
      applyPendingLock()
      if let store { return store }
      let durability = access == .writing ? KeychainStore.Durability.onClose : .eachCall
      let keychain = try DeviceKeychain(directory: directory, device: name, files: files).open(
        durability, isForReading: access == .reading, shouldContinue: environment.clock.shouldContinue)
      store = keychain
      openingCommitCount = keychain.commitCount
      return keychain
    }
  }

  /// The number of items without tombstones. No key is needed.
  package var itemCount: Int {
    get throws(KeyhaulError) {
      let store = try keychain
      var count = 0
      for kind in ItemKind.allCases { count += try store.count(of: kind) }
      return count
    }
  }

  /// Increases the revision because items are about to change, and returns the keychain for the changes.
  ///
  /// The new counter is stored before the transaction begins. If the process dies in between, a plan may count as
  /// stale although nothing changed, but no plan stays valid after a change. Reading a revision requires access to the
  /// device, so no other process sees the intermediate state. The counter also stays increased if the change fails.
  ///
  /// Only the first change of a session stores the revision and checks the keychain's indexes. Further changes increase
  /// the counter in memory, and the end of the session stores it. No other process has seen a revision in between, so a
  /// crash before the end does not leave a stale plan valid either.
  ///
  /// - Throws: `.deviceNotWritable`, `.deviceIO`.
  package func prepareItemChanges() throws(KeyhaulError) -> KeychainStore {
    var newRecord = record
    newRecord.incrementRevision()
    if hasIncrementedRevision {
      try requireWriting()
      record = newRecord
      hasUnsavedRevision = true
    } else {
      // If this fails, no item was changed, even if the new revision was stored.
      try files.beforeCommit { () throws(KeyhaulError) in try store(newRecord) }
      hasIncrementedRevision = true
    }
    let keychain = try keychain
    if !hasCheckedIndexes {
      try keychain.requireSoundIndexes()
      hasCheckedIndexes = true
    }
    return keychain
  }

  /// Increases the revision and runs the closure with the keychain and the class keys.
  package func changeItems<Value>(
    _ body: (KeychainStore, ClassKeys) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let store = try prepareItemChanges()
    return try body(store, classKeys)
  }

  /// Stores the date of a backup. Plans do not depend on this date.
  package func recordBackup(at date: KeychainDate) throws(KeyhaulError) {
    var newRecord = record
    newRecord.lastBackup = date
    try store(newRecord)
  }

  // MARK: Changing files

  /// Whether the session has ended.
  var isInvalidated: Bool { fileLock == nil }

  var invalidatedError: KeyhaulError {
    KeyhaulError(.deviceNotWritable, name, "this session has ended")
  }

  package func requireWriting() throws(KeyhaulError) {
    guard fileLock != nil else { throw invalidatedError }
    guard access == .writing else {
      throw KeyhaulError(.deviceNotWritable, name, "it was opened for reading")
    }
  }

  /// Stores a changed record.
  func store(_ newRecord: DeviceRecord) throws(KeyhaulError) {
    try requireWriting()
    try files.replace(DeviceFile.record.path(in: directory), newRecord.encoded())
    record = newRecord
    hasUnsavedRevision = false
  }

  /// Applies a change of several files. If it fails, the session ends, and the device has its old or its new state, as
  /// the error's stage states. The next process that opens the device completes an interrupted change.
  ///
  /// - Returns: The number of items that the action `.dropPasscodeItems` deleted; 0 if the change does not contain it.
  @discardableResult
  func apply(_ change: DeviceChange) throws(KeyhaulError) -> Int {
    try requireWriting()
    if change.keychain != .keep {
      // A database that cannot be opened must prevent the change before its commit.
      if change.keychain == .dropPasscodeItems { _ = try keychain }
      try? closeKeychain()
    }
    do throws(KeyhaulError) {
      try change.commit(in: directory, files)
      return try files.afterCommit("the next command that opens the device finishes the change") {
        () throws(KeyhaulError) in try DeviceChange.finish(in: directory, device: name, files)
      }
    } catch {
      invalidate()
      throw error
    }
  }
}
