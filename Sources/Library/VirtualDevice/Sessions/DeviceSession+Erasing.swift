public import Basics
import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// Replaces the keybag and its keys, and resets the count of failed attempts.
  ///
  /// - Parameters:
  ///   - unlocked: The new keybag and its keys.
  ///   - keychain: The effect on the keychain database.
  ///   - edit: Further changes of the record.
  /// - Returns: The number of items that `.dropPasscodeItems` deleted; 0 for any other effect.
  @discardableResult
  func install(
    _ unlocked: UnlockedSystemKeybag, keychain: DeviceChange.KeychainAction,
    edit: (inout DeviceRecord) -> Void = { _ in }
  ) throws(KeyhaulError) -> Int {
    var newRecord = record
    newRecord.failedAttempts = 0
    newRecord.incrementRevision()
    edit(&newRecord)
    let keybag = unlocked.keybag
    var change = DeviceChange()
    change.keychain = keychain
    change.replace(.keybag, with: keybag.serialized())
    change.replace(.memory, with: try memory(of: unlocked.classKeys))
    change.replace(.record, with: newRecord.encoded())
    let count = try apply(change)
    record = newRecord
    self.keybag = keybag
    classKeys = unlocked.classKeys
    lockDeadline = nil
    return count
  }

  /// Erases all content and settings: the device gets a new keybag, an empty keychain, and no passcode. Nothing that
  /// was encrypted before can be read. The device key, the name and the identifier stay. When a backup of this device
  /// is restored, the device therefore still counts as the backup's source device.
  ///
  /// Apps stay installed without their items. The date of the last backup is removed.
  ///
  /// - Throws: `.deviceNotWritable` if the session was opened for reading or has ended; `.deviceIO` if a file operation
  ///   fails. The device was erased nevertheless if the error's `stage` is `.afterCommit`.
  public func erase() throws(KeyhaulError) {
    try requireWriting()
    let rounds = keybag.keybag.iterations ?? environment.passcodeRounds
    let newKeybag = try translatingErrors(about: name) { () throws(DataProtectionError) in
      try SystemKeybag.make(
        passcode: Secret(utf8: ""), hardware: hardware, rounds: rounds, random: environment.random,
        progress: environment.derivation)
    }
    // Pairings are removed first, so that a crash never leaves an erased device with an old pairing.
    try device.forgetPairings()
    try install(newKeybag, keychain: .empty) { record in record.lastBackup = nil }
  }
}
