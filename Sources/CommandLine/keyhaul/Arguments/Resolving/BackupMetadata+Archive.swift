import KeyhaulKit

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
