package import Basics
import KeychainFormats

/// The `Status.plist` of a backup, which states whether the device finished it.
package struct BackupStatus: Sendable, Equatable {
  /// The version, `3.3` on current devices.
  package var version: String?
  /// The identifier of the backup.
  package var uuid: String?
  /// The date on which the backup ended.
  package var date: KeychainDate?
  /// The state: `finished`, or `uploading`, `moving`, or `removing`; `nil` if it is missing.
  package var snapshotState: String?
  /// Whether the device sent all files. If `false`, the device sent only changes. The backup is complete in both cases.
  package var isFullBackup: Bool?

  /// Creates the status of a new backup, finished by default.
  package init(
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
  /// - Throws: `.damaged` or `.overLimit`.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    let root = try rootDictionary(of: bytes, in: MetadataFile.status.path)
    self.init(
      version: root["Version"]?.stringValue, uuid: root["UUID"]?.stringValue, date: root["Date"]?.dateValue,
      snapshotState: root["SnapshotState"]?.stringValue, isFullBackup: root["IsFullBackup"]?.booleanValue)
  }

  /// Whether the device finished the backup.
  package var isFinished: Bool { snapshotState == "finished" }

  /// Returns the status as a binary property list.
  package func serialized() throws(KeyhaulError) -> [UInt8] {
    var root: PropertyDictionary = ["BackupState": .string("new")]
    root["SnapshotState"] = snapshotState.map { .string($0) }
    root["Date"] = date.map { .date($0) }
    root["IsFullBackup"] = isFullBackup.map { .boolean($0) }
    root["UUID"] = uuid.map { .string($0) }
    root["Version"] = version.map { .string($0) }
    return try encode(root, as: MetadataFile.status.path)
  }
}
