import KeyhaulKit

extension SubjectFacts {
  /// What an archive says that was opened.
  init(_ archive: BackupArchive) {
    self.init()
    identifier = archive.device.identifier
    deviceName = archive.device.name
    date = archive.date
    isEncrypted = archive.isManifestUnreadable ? nil : archive.isEncrypted
    digest = archive.digest
    state = Self.state(of: archive)?.rawValue
  }

  /// What the property lists of a directory say that could not be opened.
  init(_ entry: BackupDirectory.Entry) {
    self.init()
    identifier = entry.identifier
    deviceName = entry.deviceName
    date = entry.date
    isEncrypted = entry.isEncrypted
    state = entry.state?.rawValue
  }

  private static func state(of archive: BackupArchive) -> BackupDirectory.Entry.State? {
    guard !archive.isManifestMissing, !archive.isRemainder, archive.unreadablePropertyLists.isEmpty else {
      return .damaged
    }
    guard let status = archive.status, status.snapshotState != nil else { return nil }
    return status.isFinished ? .finished : .unfinished
  }
}
