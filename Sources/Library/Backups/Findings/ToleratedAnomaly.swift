package import Basics

/// An anomaly with which a backup was opened: a finding, or an anomaly that is only a note or a warning.
///
/// Damage that reports list with an id, such as new damage of the manifest, is a case of `BackupFinding`. A case of its
/// own here is for an anomaly by which no item is lost.
package enum ToleratedAnomaly: Sendable, Hashable, CustomStringConvertible {
  /// `Status.plist` is missing, so that it is unknown whether the backup was finished.
  case statusMissing
  /// `Status.plist` or `Info.plist` exists but was not read. No stored content depends on it.
  case propertyListUnreadable(name: String, reason: String)
  /// The manifest does not state whether the backup has a password.
  case encryptionNotStated
  /// The manifest claims a password, but neither the list of files nor a file is encrypted. The backup can be read like
  /// one without a password. It can be neither restored nor changed.
  case encryptionClaimed
  /// The manifest database is encrypted without padding, as some tools do.
  case databaseUnpadded
  /// The manifest database is in SQLite's write-ahead mode.
  case databaseInWriteAheadMode
  /// SQLite's log `Manifest.db-wal` contains a part of the list of files, or `Manifest.db-journal` reverts an
  /// incomplete change. Keyhaul applies the log or the journal, as SQLite does.
  case listJournalRead(name: String)
  /// The recorded size of the keychain file differs from its actual size, which is used.
  case sizeDiffers(recorded: Int64, found: Int64)
  /// The recorded digest of the keychain file does not match. Each item is authenticated separately, so decrypted items
  /// are unchanged.
  case digestDiffers
  /// The backup was interrupted, in the state that `Status.plist` contains. The content can be read, but not restored.
  case unfinished(state: String)
  /// A finding about a part of the backup.
  case finding(BackupFinding)

  package var description: String {
    switch self {
    case .statusMissing: "there is no Status.plist to show that the backup was finished"
    case .propertyListUnreadable(let name, let reason): "\(name) could not be read: \(reason)"
    case .encryptionNotStated: "Manifest.plist does not say whether there is a password; Keyhaul looks at its contents"
    case .encryptionClaimed:
      "\(MetadataFile.manifest.path) says that the backup is encrypted, but its manifest is not, and no file has a key"
    case .databaseUnpadded: "the manifest database was encrypted without padding"
    case .databaseInWriteAheadMode: "the manifest database was left in write-ahead mode"
    case .listJournalRead(let name):
      name == MetadataFile.databaseLog.path
        ? "part of the manifest comes from its log, \(name)"
        : "the manifest is read as it was before an unfinished change, which \(name) undoes"
    case .sizeDiffers(let recorded, let found):
      "the manifest records \(HumanReadable.grouped(recorded)) bytes for the keychain file, which has \(HumanReadable.grouped(found))"
    case .digestDiffers: "the digest recorded for the keychain file does not match"
    case .unfinished(let state):
      "the device never finished the backup: \(MetadataFile.status.path) says \(Self.stateClause(state))"
    case .finding(let finding): finding.description
    }
  }
}

extension ToleratedAnomaly {
  /// Returns a clause about an unfinished backup, without the name of `Status.plist`.
  static func unfinishedClause(_ state: String) -> String {
    "it says \(stateClause(state)), so the device never finished the backup"
  }

  /// Returns the recorded state of an unfinished backup as a clause: `"uploading", not "finished"`
  private static func stateClause(_ state: String) -> String { "\(quoted(state)), not \"finished\"" }

  /// The anomaly as a finding, or `nil` if the anomaly is not reported as a finding.
  package var finding: BackupFinding? {
    switch self {
    case .finding(let finding): finding
    case .propertyListUnreadable(let name, let reason): .propertyListUnreadable(name: name, reason: reason)
    case .encryptionClaimed: .falseClaim(reason: description)
    case .statusMissing, .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .listJournalRead,
      .sizeDiffers, .digestDiffers, .unfinished:
      nil
    }
  }
}

/// An unreadable `Status.plist` or `Info.plist`, without which a backup can still be opened.
package struct UnreadablePropertyList: Sendable, Equatable {
  /// The name of the file.
  package let name: String
  /// The reason why it is unreadable.
  package let error: KeyhaulError

  init(_ part: MetadataFile, _ error: KeyhaulError) {
    name = part.path
    self.error = error
  }

  /// The reason without the name of the file.
  package var reason: String {
    let prefix = "\(name): "
    return error.reason.hasPrefix(prefix) ? String(error.reason.dropFirst(prefix.count)) : error.reason
  }

  var anomaly: ToleratedAnomaly { .propertyListUnreadable(name: name, reason: reason) }
}
