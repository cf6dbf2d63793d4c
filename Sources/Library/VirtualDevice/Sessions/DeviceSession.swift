public import Basics
public import KeychainCrypto
import KeychainFormats
package import Keychains

/// One process's hold on a device: its identity, the keys that are in memory, and its keychain.
///
/// Several may read at once; who writes is alone. The hold ends with `finish()`, `end()`, the last reference, or the
/// process. A session is for one thread.
///
/// What a call changed is safe from the process's death when the call returns, and from a power cut when `finish()`
/// does: one session waits for the disk once, however many items it adds.
public final class DeviceSession {
  /// The device that the session holds.
  public let device: VirtualDevice
  /// Reading beside others, or writing alone.
  package let access: DeviceAccess
  /// Identity and counters, as they are stored.
  public internal(set) var record: DeviceRecord
  /// The class keys that are in the device's memory. Lent, never copied.
  package internal(set) var classKeys: ClassKeys
  /// When the keys go that a lock drops, where the device was locked a moment ago.
  var lockDeadline: KeychainDate?
  var keybag: SystemKeybag
  let hardware: HardwareUID
  private var store: KeychainStore?
  /// Commits that belong to opening the keychain and change no item.
  private var commitsOfOpening = 0
  private var hold: DeviceFileLock?
  /// Whether a revision of this session is on disk.
  private var hasRaisedRevision = false
  /// Whether the keychain's indexes were compared with its tables in this session.
  private var hasCheckedIndexes = false
  /// Whether the record in memory has a later revision than the one on disk.
  private var isRecordAhead = false
  /// Whether items were changed through a keychain that is closed by now.
  private var hasChangedItems = false

  /// - Parameter isKept: Whether it is the session that this process keeps between calls, which no other stands beside.
  init(
    _ device: VirtualDevice, _ access: DeviceAccess, verb: String, wait: Duration, isKept: Bool = false
  ) throws(KeyhaulError) {
    if !isKept { KeptSessions.ofThisProcess.letGo(of: device.directory) }
    let hold = try Self.acquireLock(of: device, access, verb: verb, wait: wait)
    let files = device.environment.files
    let name = device.name.text
    guard let recordBytes = try files.read(DeviceFile.record.path(in: device.directory), .record) else {
      throw KeyhaulError(.deviceDamaged, name, "device.json is missing")
    }
    let record = try DeviceRecord(decoding: recordBytes, of: name)
    let hardware = try files.readHardware(in: device.directory, device: name)
    guard let keybagBytes = try files.read(DeviceFile.keybag.path(in: device.directory), .keybag) else {
      throw KeyhaulError(.deviceDamaged, name, "its keybag is missing")
    }
    let memory = try files.read(DeviceFile.memory.path(in: device.directory), .memory)
    let keybag: SystemKeybag
    do throws(FormatError) {
      keybag = try SystemKeybag(parsing: keybagBytes)
    } catch {
      throw KeyhaulError(.deviceDamaged, name, "its keybag: \(error.reason)")
    }
    let keys = try Self.keys(memory: memory, keybag, hardware, device: name, device.environment)
    self.device = device
    self.access = access
    self.record = record
    self.classKeys = keys
    self.keybag = keybag
    self.hardware = hardware
    self.hold = consume hold
  }

  deinit { end() }

  /// Ends the session when all that it changed is on the disk. One that has ended is left alone.
  ///
  /// - Throws: `.deviceIO`, or an error of the keychain, where it may not be; of stage `afterCommit` where something was changed, which stands.
  ///   The session has ended all the same.
  package func finish() throws(KeyhaulError) {
    defer { end() }
    try synchronize()
  }

  /// Waits until all that the session has changed is on the disk. It goes on; a keychain that was taken from it before is
  /// closed.
  ///
  /// - Throws: `.deviceIO`, or an error of the keychain, where it may not be; of stage `afterCommit` where something was changed, which stands.
  package func synchronize() throws(KeyhaulError) {
    noteChangedItems()
    do throws(KeyhaulError) {
      if isRecordAhead, hold != nil { try store(record) }
      try closeKeychain()
    } catch {
      guard hasChangedItems else { throw error.at(.beforeCommit) }
      throw error.at(.afterCommit, "until the change is on the disk, a power failure may undo it")
    }
  }

  private func closeKeychain() throws(KeyhaulError) {
    guard let store else { return }
    noteChangedItems()
    self.store = nil
    try store.close()
  }

  private func noteChangedItems() {
    if let store, store.commitCount > commitsOfOpening { hasChangedItems = true }
  }

  /// Closes the keychain, forgets the keys and lets go of the device. What cannot be written any more is not told:
  /// that is for who gives up, `finish()` for who is done.
  public func end() {
    if isRecordAhead, hold != nil { try? store(record) }
    try? store?.close()
    store = nil
    lockDeadline = nil
    classKeys = classKeys.dropping(classKeys.classes)
    hold = nil
  }

  // MARK: What a device is

  /// The device's name as text.
  public var name: String { device.name.text }
  var directory: String { device.directory }
  var files: DeviceFiles { device.environment.files }
  /// The time, the randomness and the file system of the device.
  package var environment: DeviceEnvironment { device.environment }

  /// True where the keybag has a key of class 12, which exists while a passcode is set.
  package var isPasscodeSet: Bool { keybag.isPasscodeSet }

  /// Which class keys are in memory now: all, those of after the first unlock, or none that a passcode guards.
  package var state: DeviceState {
    settleLock()
    if classKeys.hasKey(of: .whenUnlocked) { return .unlocked }
    return classKeys.hasKey(of: .afterFirstUnlock) ? .locked : .beforeFirstUnlock
  }

  /// The key that ties backups to this device (0x835).
  ///
  /// - Throws: `.underlying` where the cryptographic library fails.
  public func deviceKey() throws(KeyhaulError) -> DeviceKey {
    try reporting(about: name) { () throws(DataProtectionError) in try hardware.deviceKey() }
  }

  // MARK: The keychain

  /// The keychain's database. What changes items goes through `changeItems` or after `willChangeItems`, so that the
  /// revision tells of it. Closed at the session's end: its calls throw then.
  ///
  /// - Throws: `.deviceDamaged`, or an error of the keychain; `.deviceNotWritable` after the session's end.
  package var keychain: KeychainStore {
    get throws(KeyhaulError) {
      guard hold != nil else { throw ended }
      settleLock()
      if let store { return store }
      let durability = access == .writing ? KeychainStore.Durability.onClose : .eachCall
      let opened = try DeviceKeychain(directory: directory, device: name, files: files).open(
        durability, isForReading: access == .reading, shouldContinue: environment.clock.shouldContinue)
      store = opened
      commitsOfOpening = opened.commitCount
      return opened
    }
  }

  /// How many items there are, tombstones apart. Needs no key.
  package var itemCount: Int {
    get throws(KeyhaulError) {
      let store = try keychain
      var count = 0
      for kind in ItemKind.allCases { count += try store.count(of: kind) }
      return count
    }
  }

  /// Raises the revision, because items are about to change, and gives the keychain to change them in.
  ///
  /// The raised counter is on disk before the transaction begins: a process that dies in between leaves a plan stale
  /// that was not, never one fresh that is stale. Readers of a revision hold the device, so that none sees the time between.
  /// For the same reason it stays raised where the change then fails.
  ///
  /// Only the first change of a session saves the revision and checks the keychain's indexes. Further changes raise the
  /// counter in memory, and the end of the session saves it. No other process has seen a revision in between, so a
  /// crash before the end does not leave a stale plan fresh either.
  ///
  /// - Throws: `.deviceNotWritable`, `.deviceIO`.
  package func willChangeItems() throws(KeyhaulError) -> KeychainStore {
    var raised = record
    raised.raiseRevision()
    if hasRaisedRevision {
      try requireWriting()
      record = raised
      isRecordAhead = true
    } else {
      // A raised revision is no change of an item.
      try files.uncommitted { () throws(KeyhaulError) in try store(raised) }
      hasRaisedRevision = true
    }
    let keychain = try keychain
    if !hasCheckedIndexes {
      try keychain.requireSoundIndexes()
      hasCheckedIndexes = true
    }
    return keychain
  }

  /// Changes items: raises the revision, then runs the closure with the keychain and the keys in memory.
  package func changeItems<Value>(
    _ body: (KeychainStore, ClassKeys) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let store = try willChangeItems()
    return try body(store, classKeys)
  }

  /// Remembers when the device was backed up. No change that a plan depends on.
  package func recordBackup(at date: KeychainDate) throws(KeyhaulError) {
    var changed = record
    changed.lastBackup = date
    try store(changed)
  }

  // MARK: Changing files

  /// Whether the session holds its device no longer.
  var hasEnded: Bool { hold == nil }

  var ended: KeyhaulError {
    KeyhaulError(.deviceNotWritable, name, "this session has ended")
  }

  package func requireWriting() throws(KeyhaulError) {
    guard hold != nil else { throw ended }
    guard access == .writing else {
      throw KeyhaulError(.deviceNotWritable, name, "it was opened for reading")
    }
  }

  /// Puts a changed record in the place of the stored one.
  func store(_ changed: DeviceRecord) throws(KeyhaulError) {
    try requireWriting()
    try files.replace(DeviceFile.record.path(in: directory), changed.encoded())
    record = changed
    isRecordAhead = false
  }

  /// Carries out a change of several files. Where it fails the session is over: the device is as before or as after,
  /// as the error's stage says; what was left of the change, whoever opens the device next finishes.
  ///
  /// - Returns: How many items the change destroyed one by one.
  @discardableResult
  func carryOut(_ change: DeviceChange) throws(KeyhaulError) -> Int {
    try requireWriting()
    if change.keychain != .keep {
      // A database that cannot be opened has to stop the change before it is decided on, not after.
      if change.keychain == .dropPasscodeItems { _ = try keychain }
      try? closeKeychain()
    }
    do throws(KeyhaulError) {
      try change.commit(in: directory, files)
      return try files.committed("the next command that opens the device finishes the change") {
        () throws(KeyhaulError) in try DeviceChange.finish(in: directory, device: name, files)
      }
    } catch {
      end()
      throw error
    }
  }
}

extension DeviceSession {
  /// Takes the lock and leaves no change half done.
  static func acquireLock(
    of device: VirtualDevice, _ access: DeviceAccess, verb: String, wait: Duration
  ) throws(KeyhaulError) -> DeviceFileLock {
    let files = device.environment.files
    let name = device.name.text
    func take(_ access: DeviceAccess) throws(KeyhaulError) -> DeviceFileLock {
      try DeviceFileLock.acquire(
        device.directory, device: name, access: access, verb: verb, wait: wait, clock: device.environment.clock, files)
    }
    func finish() throws(KeyhaulError) {
      try DeviceChange.finish(in: device.directory, device: name, files)
      try DeviceChange.discardStaged(in: device.directory, files)
    }
    switch access {
    case .writing:
      let lock = try take(.writing)
      try finish()
      return lock
    case .reading:
      while true {
        let lock = try take(.reading)
        guard try DeviceChange.isPending(in: device.directory, files) else { return lock }
        _ = consume lock
        let alone = try take(.writing)
        try finish()
        _ = consume alone
      }
    }
  }

  /// What is in memory; after a restart, what the hardware alone opens; without a passcode, everything.
  static func keys(
    memory: [UInt8]?, _ keybag: SystemKeybag, _ hardware: borrowing HardwareUID, device: String,
    _ environment: DeviceEnvironment
  ) throws(KeyhaulError) -> ClassKeys {
    do throws(DataProtectionError) {
      // Opens without the passcode, to learn whether keybag and hardware belong together at all.
      let boot = try keybag.unlockBeforeFirstUnlock(hardware: hardware)
      if let memory, let keys = DeviceMemory.opened(memory, with: hardware, keybagUUID: boot.keybagUUID) { return keys }
      guard !keybag.isPasscodeSet else { return boot }
      return try keybag.unlock(passcode: Secret(utf8: ""), hardware: hardware, progress: environment.derivation)
    } catch {
      switch error.code {
      case .damagedKeybag, .missingField, .wrongPasscode, .malformed:
        throw KeyhaulError(.deviceDamaged, device, "its keybag does not match its hardware key: \(error.reason)")
      default: throw KeyhaulError(error).with(subject: device)
      }
    }
  }
}

extension DeviceSession {
  /// Sets the first passcode. Items of class `akpu` can be added from now on, under a key made now.
  ///
  /// - Throws: `.passcodeSet`, `.emptyPasscode`, `.deviceIO`.
  public func setPasscode(_ passcode: borrowing Secret) throws(KeyhaulError) {
    try requireWriting()
    guard !isPasscodeSet else {
      throw KeyhaulError(.passcodeSet, name, "the set command works only on a device without a passcode")
    }
    try refuseEmpty(passcode)
    let changed = try reporting(about: name) { () throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: Secret(utf8: ""), to: passcode, hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    try adopt(changed, keychain: .keep)
  }

  /// Changes the passcode; nothing else changes.
  ///
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`, `.erased`, `.emptyPasscode`, `.deviceIO`.
  package func changePasscode(
    from old: borrowing Secret, to new: borrowing Secret
  ) throws(KeyhaulError) {
    try requireUnlockedWithPasscode()
    try refuseEmpty(new)
    let changed = try attempt(old) { (keybag, hardware) throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: old, to: new, hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    try adopt(changed, keychain: .keep)
  }

  /// Removes the passcode, and with it the key and the items of class `akpu`, for good.
  ///
  /// - Returns: How many items were destroyed.
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`, `.erased`, `.deviceIO`.
  @discardableResult
  public func removePasscode(_ passcode: borrowing Secret) throws(KeyhaulError) -> Int {
    try requireUnlockedWithPasscode()
    let changed = try attempt(passcode) { (keybag, hardware) throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: passcode, to: Secret(utf8: ""), hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    return try adopt(changed, keychain: .dropPasscodeItems)
  }

  /// Whoever holds a phone reaches its settings only after unlocking it.
  private func requireUnlockedWithPasscode() throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else { throw KeyhaulError(.noPasscode, name, "none is set") }
    guard state == .unlocked else {
      throw KeyhaulError(.locked, name, "the device must be unlocked to change its passcode")
    }
  }

  private func refuseEmpty(_ passcode: borrowing Secret) throws(KeyhaulError) {
    if passcode.isEmpty { throw KeyhaulError(.emptyPasscode, name, "the new passcode has no characters") }
  }

  /// Puts a new keybag and its keys in the place of the old ones. Whoever got here knew the passcode or erases the
  /// device, so failures are forgotten.
  ///
  /// - Parameter edit: What else changes in the record.
  @discardableResult
  func adopt(
    _ unlocked: UnlockedSystemKeybag, keychain: DeviceChange.KeychainAction,
    edit: (inout DeviceRecord) -> Void = { _ in }
  ) throws(KeyhaulError) -> Int {
    var changed = record
    changed.failedAttempts = 0
    changed.raiseRevision()
    edit(&changed)
    let keybag = unlocked.keybag
    var change = DeviceChange()
    change.keychain = keychain
    change.replace(.keybag, with: keybag.serialized())
    change.replace(.memory, with: try memory(of: unlocked.classKeys))
    change.replace(.record, with: changed.encoded())
    let count = try carryOut(change)
    record = changed
    self.keybag = keybag
    classKeys = unlocked.classKeys
    lockDeadline = nil
    return count
  }
}

extension DeviceSession {
  /// "Erase All Content and Settings": a new keybag, so that nothing under the old one can ever be read again, an empty
  /// keychain, no passcode. The hardware stays what it is, and so do name and identifier: a backup of this device made
  /// before restores to it afterwards as to the same device.
  ///
  /// Apps stay installed; their items are gone. The device no longer knows of an earlier backup.
  public func erase() throws(KeyhaulError) {
    try requireWriting()
    let rounds = keybag.keybag.iterations ?? environment.passcodeRounds
    let fresh = try reporting(about: name) { () throws(DataProtectionError) in
      try SystemKeybag.make(
        passcode: Secret(utf8: ""), hardware: hardware, rounds: rounds, random: environment.random,
        progress: environment.derivation)
    }
    // First, so that a crash in between leaves a device that has to be paired again, never one with an old pairing.
    try device.forgetPairings()
    try adopt(fresh, keychain: .empty) { record in record.lastBackup = nil }
  }
}
