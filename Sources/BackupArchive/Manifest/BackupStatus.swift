public import KeychainFormats

/// A backup's `Status.plist`: whether the device finished it.
public struct BackupStatus: Sendable, Equatable {
  /// `3.3` on current devices.
  public var version: String?
  public var uuid: String?
  public var date: KeychainDate?
  /// `finished`, or how far the device had come: `uploading`, `moving`, `removing`.
  public var snapshotState: String
  public var isFullBackup: Bool?

  public init(
    version: String? = "3.3", uuid: String?, date: KeychainDate?, snapshotState: String = "finished",
    isFullBackup: Bool? = true
  ) {
    self.version = version
    self.uuid = uuid
    self.date = date
    self.snapshotState = snapshotState
    self.isFullBackup = isFullBackup
  }

  public init(parsing bytes: [UInt8]) throws(BackupArchiveError) {
    let part = StoredPart.status.path
    let root = try rootDictionary(of: bytes, in: part)
    guard let state = root["SnapshotState"]?.stringValue else {
      throw BackupArchiveError(.damaged, "\(part) does not say whether the backup was finished")
    }
    self.init(
      version: root["Version"]?.stringValue, uuid: root["UUID"]?.stringValue, date: root["Date"]?.dateValue,
      snapshotState: state, isFullBackup: root["IsFullBackup"]?.booleanValue)
  }

  /// Whether the device came to its end.
  public var isFinished: Bool { snapshotState == "finished" }

  public func serialized() throws(BackupArchiveError) -> [UInt8] {
    var root: PropertyDictionary = ["BackupState": .string("new"), "SnapshotState": .string(snapshotState)]
    root["Date"] = date.map { .date($0) }
    root["IsFullBackup"] = isFullBackup.map { .boolean($0) }
    root["UUID"] = uuid.map { .string($0) }
    root["Version"] = version.map { .string($0) }
    return try encode(root, as: StoredPart.status.path)
  }
}
