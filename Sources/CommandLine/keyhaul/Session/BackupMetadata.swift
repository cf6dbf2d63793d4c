import KeyhaulKit

/// A backup's statements about itself. A statement is `nil` if its file could not be read.
struct BackupMetadata: Equatable, Sendable {
  /// The identifier of the source device, as the backup states it.
  var identifier: String?
  /// The name that the owner gave the device; untrusted.
  var deviceName: String?
  var date: KeychainDate?
  /// `nil` if unknown.
  var isEncrypted: Bool?
  /// "finished", "unfinished" or "damaged"; `nil` if unknown.
  var state: String?
  /// The digest of Manifest.plist, the manifest and the keychain; `nil` if the backup was not opened.
  var digest: String?
  /// Whether the backup has a seal; `nil` if it was not opened.
  var hasSeal: Bool?
  /// Whether the backup is known to differ from its seal. Earlier results of such a backup are never reused.
  var isSealBroken = false
  /// The code at the end of the seal, in hexadecimal; `nil` if there is no readable seal.
  var sealCode: String?
}

extension BackupMetadata {
  /// Creates the metadata of a backup that was read.
  init(_ archive: BackupArchive) {
    self.init()
    identifier = archive.device.identifier
    deviceName = archive.device.name
    date = archive.date
    isEncrypted = archive.isManifestUnreadable ? nil : archive.isEncrypted
    digest = archive.digest
    hasSeal = archive.seal != nil
    isSealBroken = archive.seal?.violations.isEmpty == false
    sealCode = archive.seal?.contents.map { String(hexadecimal: $0.code) }
    state = Self.state(of: archive)?.rawValue
  }

  /// Creates the metadata from the property lists of a backup folder that could not be opened.
  init(_ entry: BackupDirectory.Entry) {
    self.init()
    identifier = entry.identifier
    deviceName = entry.deviceName
    date = entry.date
    isEncrypted = entry.isEncrypted
    state = entry.state?.rawValue
  }

  private static func state(of archive: BackupArchive) -> BackupDirectory.Entry.State? {
    guard !archive.isManifestMissing, !archive.isPartial, archive.unreadablePropertyLists.isEmpty else {
      return .damaged
    }
    guard let status = archive.status, status.snapshotState != nil else { return nil }
    return status.isFinished ? .finished : .unfinished
  }
}
