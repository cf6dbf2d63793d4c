public import Basics
import KeychainFormats

/// A backup's `Status.plist`: whether the device finished it.
public struct BackupStatus: Sendable, Equatable {
  /// `3.3` on current devices.
  public var version: String?
  /// An identifier of this backup, in text.
  public var uuid: String?
  /// When the backup was finished, or broken off.
  public var date: KeychainDate?
  /// `finished`, or how far the device had come: `uploading`, `moving`, `removing`; `nil` where it doesn't say.
  public var snapshotState: String?
  /// False where the device sent only what had changed; the backup holds everything all the same.
  public var isFullBackup: Bool?

  /// Creates the status of a backup that is about to be written, finished unless told otherwise.
  public init(
    version: String? = "3.3", uuid: String?, date: KeychainDate?, snapshotState: String? = "finished",
    isFullBackup: Bool? = true
  ) {
    self.version = version
    self.uuid = uuid
    self.date = date
    self.snapshotState = snapshotState
    self.isFullBackup = isFullBackup
  }

  /// Reads a `Status.plist`, binary or XML.
  ///
  /// - Throws: `.damaged` where it is none, `.overLimit`.
  public init(parsing bytes: [UInt8]) throws(BackupArchiveError) {
    let root = try rootDictionary(of: bytes, in: StoredPart.status.path)
    self.init(
      version: root["Version"]?.stringValue, uuid: root["UUID"]?.stringValue, date: root["Date"]?.dateValue,
      snapshotState: root["SnapshotState"]?.stringValue, isFullBackup: root["IsFullBackup"]?.booleanValue)
  }

  /// Whether the device came to its end.
  public var isFinished: Bool { snapshotState == "finished" }

  /// The status as a binary property list.
  public func serialized() throws(BackupArchiveError) -> [UInt8] {
    var root: PropertyDictionary = ["BackupState": .string("new")]
    root["SnapshotState"] = snapshotState.map { .string($0) }
    root["Date"] = date.map { .date($0) }
    root["IsFullBackup"] = isFullBackup.map { .boolean($0) }
    root["UUID"] = uuid.map { .string($0) }
    root["Version"] = version.map { .string($0) }
    return try encode(root, as: StoredPart.status.path)
  }
}
