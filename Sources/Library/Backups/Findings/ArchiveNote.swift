import Basics
import KeychainFormats

/// Something unusual about a backup that was tolerated. None of them loses an item by itself.
public enum ArchiveNote: Sendable, Hashable, CustomStringConvertible {
  /// `Status.plist` is absent, so that nothing says whether the device finished the backup.
  case statusMissing
  /// `Status.plist` or `Info.plist` is there and is not read. Nothing that is stored depends on either.
  case propertyListUnreadable(name: String, reason: String)
  /// The manifest says neither that there is a password nor that there is none.
  case encryptionNotStated
  /// The manifest says that there is a password, and nothing is encrypted: neither the list of files nor a file in it.
  /// It can be read like one without a password; it is neither restored nor changed.
  case encryptionClaimed
  /// The manifest database was encrypted without padding, as some tools write it.
  case databaseUnpadded
  /// The manifest database says that it is in SQLite's write-ahead mode.
  case databaseInWriteAheadMode
  /// A part of the list of files stands in SQLite's log of it, `Manifest.db-wal`; or `Manifest.db-journal` takes back a
  /// change to it that was not finished. The list is read as SQLite reads it, with that.
  case listJournalRead(name: String)
  /// The size that the manifest records for the keychain file isn't the size it has; the file itself decides.
  case sizeDiffers(recorded: Int64, found: Int64)
  /// The digest that the list records for the keychain file doesn't fit. Each of its items has a tag of its own: what
  /// opens is what was written.
  case digestDiffers
  /// The device was interrupted; `Status.plist` says how far it had come. What is there can be read, and not restored.
  case unfinished(state: String)
  /// A part that is not as a device leaves it, and that reading goes around.
  case finding(ArchiveFinding)

  public var description: String {
    switch self {
    case .statusMissing: "there is no Status.plist to show that the backup was finished"
    case .propertyListUnreadable(let name, let reason): "\(name) could not be read: \(reason)"
    case .encryptionNotStated: "Manifest.plist does not say whether there is a password; its contents decide"
    case .encryptionClaimed:
      "\(StoredPart.manifest.path) says that it is encrypted; its manifest is unencrypted, and no file has a key"
    case .databaseUnpadded: "the manifest database was encrypted without padding"
    case .databaseInWriteAheadMode: "the manifest database was left in write-ahead mode"
    case .listJournalRead(let name):
      name == StoredPart.databaseLog.path
        ? "part of the manifest comes from its log, \(name)"
        : "the manifest is read as it was before an unfinished change, which \(name) takes back"
    case .sizeDiffers(let recorded, let found):
      "the manifest records \(Amounts.grouped(recorded)) bytes for the keychain file, which has \(Amounts.grouped(found))"
    case .digestDiffers: "the digest recorded for the keychain file does not match"
    case .unfinished(let state):
      "the device never finished the backup: \(StoredPart.status.path) says \(quoted(state)), not \"finished\""
    case .finding(let finding): finding.description
    }
  }
}

extension ArchiveNote {
  /// What of a note is a finding.
  package var finding: ArchiveFinding? {
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
