package import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// A backup with its keys, like `UnlockedBackup`, but without items in memory. The items are decrypted in chunks.
package struct BackupItemReader: Sendable {
  private let keychain: UnlockedKeychain
  let keys: ClassKeys
  /// The evidence from the items about the device key. Empty if no item was tried with a device key.
  package let hardware: DeviceKeyEvidence

  fileprivate init(
    _ archive: BackupArchive, key: BackupKey, deviceKey: DeviceKey?, for use: BackupPurpose
  ) throws(KeyhaulError) {
    keys = try key.classKeys(deviceKey: deviceKey)
    keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use)
    hardware = try Self.deviceKeyEvidence(of: keychain.index, with: keys)
  }

  private static func deviceKeyEvidence(
    of file: KeychainIndex, with keys: ClassKeys
  ) throws(KeyhaulError) -> DeviceKeyEvidence {
    var evidence = DeviceKeyEvidence()
    guard keys.classes.contains(where: { keys.availability(of: $0) == .availableThroughDevice }) else {
      return evidence
    }
    try BackupItem.openChunks(of: file, with: keys, only: .availableThroughDevice) { evidence.add($0) }
    return evidence
  }

  /// A clause about damaged class keys, or `nil` if none is damaged.
  package var keybagDamage: String? { keychain.keybagDamage }
  /// Anomalies of the backup that were tolerated.
  package var anomalies: [ToleratedAnomaly] { keychain.anomalies }
  /// The backup's file list.
  var fileList: FileList { keychain.fileList }

  /// Decrypts the items in the backup's order and in chunks, which are then released.
  ///
  /// - Parameters:
  ///   - translate: Converts an error of the backup to the caller's type.
  ///   - body: Receives a chunk. Its error stops the iteration.
  /// - Throws: The errors of `body`, or a converted error of the backup.
  package func forEachChunk<Failure: Error>(
    translating translate: (KeyhaulError) -> Failure, _ body: ([BackupItem]) throws(Failure) -> Void
  ) throws(Failure) {
    var failure: Failure?
    func shouldContinue() -> Bool { failure == nil }
    do throws(KeyhaulError) {
      try BackupItem.openChunks(of: keychain.index, with: keys, shouldContinue: shouldContinue) { items in
        do throws(Failure) { try body(items) } catch { failure = error }
      }
    } catch {
      throw failure ?? translate(error)
    }
    if let failure { throw failure }
  }

  /// Returns the reason why an item cannot be decrypted, or `nil` if it can.
  package func reason(of item: BackupItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: keychain.hasPassword)
  }
}

extension BackupArchive {
  /// Prepares to decrypt the items in chunks, for callers that keep no items. Items that need a device key are
  /// decrypted once in advance, to collect the evidence about the key.
  ///
  /// - Parameters:
  ///   - key: The key of the backup's password, from `unlock`.
  ///   - deviceKey: The device key of the possible source device.
  ///   - use: The caller's next step with the backup, as for `open(with:)`.
  /// - Throws: The errors of `open(with:)`.
  package func reader(
    with key: BackupKey, deviceKey: DeviceKey? = nil, for use: BackupPurpose
  ) throws(KeyhaulError) -> BackupItemReader {
    try BackupItemReader(self, key: key, deviceKey: deviceKey, for: use)
  }
}
