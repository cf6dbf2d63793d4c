package import Basics
import KeychainFormats

/// An anomaly in a part of a backup. The other parts can be opened.
public enum BackupFinding: Sendable, Hashable {
  /// The manifest is unreadable, so that the password status and the keybag are unknown.
  case manifestUnreadable(reason: String)
  /// `Manifest.plist` is missing, and `Manifest.db` is an unencrypted list.
  case manifestMissing
  /// The manifest contains no version.
  case versionMissing
  /// The keybag is missing or unusable.
  case keybagUnusable(reason: String)
  /// Some class keys of the keybag cannot be unwrapped, but others can.
  case classKeysDamaged(reason: String)
  /// `Status.plist` does not contain the progress of the backup.
  case stateMissing
  /// `Status.plist` or `Info.plist` is unreadable.
  case propertyListUnreadable(name: String, reason: String)
  /// The manifest claims a password, but the stored content is unencrypted.
  case falseClaim(reason: String)
  /// The backup is a decrypted copy by Keyhaul, which is only for reading.
  case decryptedCopy
  /// The manifest claims that there is no password, but its content was created with one.
  case passwordDenied(reason: String)
  /// The keybag wraps class keys with an additional layer or without the password, which no device does.
  case wrapsUnusual(reason: String)
  /// The list of files has bytes after its last page.
  ///
  /// SQLite may leave whole pages if it reserved more than it needed. Other bytes were added, or remain from a
  /// truncated block of an encrypted list.
  case listTrailingBytes(count: Int, isWholePages: Bool)
  /// An SQLite log or journal next to `Manifest.db` is not or not completely used, because it does not match the list
  /// or its change is incomplete. `byteCount` is the number of unused bytes.
  case listJournalUnread(name: String, byteCount: Int64, reason: String)
  /// The list of files fails its integrity check or is truncated. Some rows are readable. `lost` is the number of
  /// others, or `nil` if it is unknown.
  case listDamaged(readable: Int, lost: Int?, reason: String)
  /// Rows of the list of files have a domain, path, link target, or attribute name that is not UTF-8.
  case listNamesNotUTF8(name: String, count: Int, first: String)
  /// Payloads have unusual names. `unread` is the number of ambiguous files.
  case payloadsRenamed(count: Int, unread: Int, first: String)
  /// The list of files is unreadable.
  case listUnreadable(name: String, reason: String)
  /// The list of files contains a keychain file that is not stored.
  case keychainMissing(reason: String)
  /// The keychain file is unreadable.
  case keychainDamaged(reason: String)
  /// The keychain file is an XML property list, which no device writes.
  case keychainInXML
  /// The keychain file has keys that are not kinds of items.
  case keychainKeysUnknown([String])
  /// The keychain file refers to a keybag other than the manifest's. Devices refuse it.
  case keybagMismatch(file: String, keybag: String)
  /// A file does not match the seal, or the seal is invalid.
  case sealBroken(SealViolation)

  /// The kinds of findings. The raw values are those of machine-readable reports.
  package enum Kind: String, Sendable, CaseIterable {
    /// `Manifest.plist` is unreadable.
    case manifestUnreadable = "manifest-unreadable"
    /// `Manifest.plist` is missing, and `Manifest.db` is unencrypted.
    case manifestMissing = "manifest-missing"
    /// `Manifest.plist` contains no version.
    case versionMissing = "version-missing"
    /// The manifest has no usable keybag.
    case keybagUnusable = "keybag-unusable"
    /// Class keys of the keybag cannot be unwrapped.
    case classKeysDamaged = "class-keys-damaged"
    /// `Status.plist` does not contain the progress of the backup.
    case stateMissing = "state-missing"
    /// `Info.plist` or `Status.plist` is unreadable.
    case propertyListUnreadable = "property-list-unreadable"
    /// The manifest makes a false claim.
    case falseClaim = "false-claim"
    /// The manifest states that the backup is a decrypted copy, which devices refuse.
    case decryptedCopy = "decrypted-copy"
    /// The manifest denies the password with which its content was created.
    case passwordDenied = "password-denied"
    /// Class keys are wrapped in a way that no device uses.
    case wrapsUnusual = "wraps-unusual"
    /// `Manifest.db` has bytes after its last page.
    case listTrailingBytes = "list-trailing-bytes"
    /// A log or journal next to `Manifest.db` is not or not completely used.
    case listJournalUnread = "list-journal-unread"
    /// The list of files is partly damaged.
    case listDamaged = "list-damaged"
    /// The list of files contains names that are not UTF-8.
    case listNamesNotUTF8 = "list-names-not-utf8"
    /// Payloads have unusual names.
    case payloadsRenamed = "payloads-renamed"
    /// The list of files is unreadable.
    case listUnreadable = "list-unreadable"
    /// The listed keychain file is not stored.
    case keychainMissing = "keychain-missing"
    /// The keychain file is unreadable.
    case keychainDamaged = "keychain-damaged"
    /// The keychain file is an XML property list.
    case keychainInXML = "keychain-in-xml"
    /// The keychain file has unknown keys.
    case keychainKeysUnknown = "keychain-keys-unknown"
    /// The keychain file refers to another keybag.
    case keybagMismatch = "keybag-mismatch"
    /// A file does not match `Keyhaul.seal`, or the seal is invalid.
    case sealBroken = "seal-broken"
  }

  /// The kind of finding.
  package var kind: Kind {
    switch self {
    case .manifestUnreadable: .manifestUnreadable
    case .manifestMissing: .manifestMissing
    case .versionMissing: .versionMissing
    case .keybagUnusable: .keybagUnusable
    case .classKeysDamaged: .classKeysDamaged
    case .stateMissing: .stateMissing
    case .propertyListUnreadable: .propertyListUnreadable
    case .falseClaim: .falseClaim
    case .decryptedCopy: .decryptedCopy
    case .passwordDenied: .passwordDenied
    case .wrapsUnusual: .wrapsUnusual
    case .listTrailingBytes: .listTrailingBytes
    case .listJournalUnread: .listJournalUnread
    case .listDamaged: .listDamaged
    case .listNamesNotUTF8: .listNamesNotUTF8
    case .payloadsRenamed: .payloadsRenamed
    case .listUnreadable: .listUnreadable
    case .keychainMissing: .keychainMissing
    case .keychainDamaged: .keychainDamaged
    case .keychainInXML: .keychainInXML
    case .keychainKeysUnknown: .keychainKeysUnknown
    case .keybagMismatch: .keybagMismatch
    case .sealBroken: .sealBroken
    }
  }

  /// The file of the finding: the name of a metadata file, or a domain and path.
  package var file: String {
    switch self {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual:
      MetadataFile.manifest.path
    case .stateMissing: MetadataFile.status.path
    case .propertyListUnreadable(let name, _), .listUnreadable(let name, _),
      .listJournalUnread(let name, _, _), .listNamesNotUTF8(let name, _, _):
      name
    case .payloadsRenamed(_, _, let first): first
    case .listTrailingBytes, .listDamaged: MetadataFile.database.path
    case .keychainMissing, .keychainDamaged, .keychainInXML, .keychainKeysUnknown, .keybagMismatch:
      Self.keychainName
    case .sealBroken(let violation): violation.file
    }
  }

  private static let keychainName = "KeychainDomain/keychain-backup.plist"

  /// Whether the finding makes a part of the backup unavailable.
  package var isLoss: Bool {
    switch self {
    case .manifestUnreadable, .manifestMissing, .keybagUnusable, .classKeysDamaged, .listUnreadable, .keychainMissing,
      .keychainDamaged:
      true
    case .listDamaged(_, let lost, _): lost != 0
    case .versionMissing, .stateMissing, .propertyListUnreadable, .falseClaim, .decryptedCopy, .passwordDenied,
      .wrapsUnusual, .listTrailingBytes, .keychainInXML, .keychainKeysUnknown, .keybagMismatch, .listJournalUnread,
      .listNamesNotUTF8, .payloadsRenamed, .sealBroken:
      false
    }
  }

  /// Whether the backup may differ from what its device wrote, even if nothing is lost. A decrypted copy differs too,
  /// but states this itself.
  package var isDamage: Bool { isLoss || (blocks(.restoring) && self != .decryptedCopy) }
}

extension BackupFinding: CustomStringConvertible {
  /// The finding as a clause, without its file.
  package var fact: String {
    switch self {
    case .manifestMissing: "it is missing; the manifest database was read as an unencrypted manifest"
    case .versionMissing: "it has no version"
    case .stateMissing: "it does not say whether the backup was finished"
    case .decryptedCopy: "it says that this is a decrypted copy; only its keychain items need a password"
    case .manifestUnreadable(let reason), .keybagUnusable(let reason), .classKeysDamaged(let reason),
      .propertyListUnreadable(_, let reason), .falseClaim(let reason), .passwordDenied(let reason),
      .wrapsUnusual(let reason),
      .listUnreadable(_, let reason), .keychainMissing(let reason), .keychainDamaged(let reason):
      reason
    case .keybagMismatch(let file, let keybag):
      "the keychain file names keybag \(file), but Manifest.plist contains \(keybag)"
    case .listTrailingBytes(let count, _):
      "\(HumanReadable.count(count, "byte")) \(count == 1 ? "follows" : "follow") its last page"
    case .listJournalUnread(_, let byteCount, let reason):
      "it is stored next to \(MetadataFile.database.path), and \(HumanReadable.bytes(byteCount)) of it are not read: \(reason)"
    case .listDamaged(let readable, let lost, let reason):
      "\(reason); \(HumanReadable.count(readable, "row")) can be read, " + Self.lost(lost)
    case .listNamesNotUTF8(_, let count, let first):
      "\(HumanReadable.count(count, "entry", plural: "entries")) \(count == 1 ? "has" : "have") a name that is not UTF-8, "
        + "shown with %F5 for the byte F5; \(count == 1 ? "it" : "the first") is \(quoted(first))"
    case .payloadsRenamed(let count, let unread, let first): Self.renamed(count, unread, first)
    case .keychainInXML: "it is an XML property list, which no device writes"
    case .sealBroken(let violation): violation.reason
    case .keychainKeysUnknown(let keys): "it has keys that do not name a kind of item: \(Self.shown(keys))"
    }
  }

  /// The finding as a clause with its file.
  public var description: String { fact.contains(file) ? fact : "\(file): \(fact)" }

  private static func lost(_ count: Int?) -> String {
    switch count {
    case nil: "the number of unreadable rows is unknown"
    case 0?: "no row is lost"
    case let count?: "\(HumanReadable.grouped(count)) cannot"
    }
  }

  private static func renamed(_ count: Int, _ unread: Int, _ first: String) -> String {
    let renamed =
      "\(HumanReadable.count(count, "payload")) \(count == 1 ? "has" : "have") a name that no device uses: "
      + "\(count == 1 ? "" : "the first is ")\(quoted(first))"
    guard unread > 0 else { return renamed }
    let ambiguous =
      "\(HumanReadable.count(unread, "file")) \(unread == 1 ? "repeats" : "repeat") a payload under a second name "
      + "and \(unread == 1 ? "is" : "are") not read"
    return count > 0
      ? "\(renamed); \(ambiguous)" : "\(ambiguous): \(unread == 1 ? "" : "the first is ")\(quoted(first))"
  }

  private static let shownKeyCount = 5

  private static func shown(_ keys: [String]) -> String {
    let names = keys.prefix(shownKeyCount).map(quoted)
    return names.joined(separator: ", ") + (keys.count > names.count ? ", ..." : "")
  }
}

/// An anomaly that was tolerated, because no item is lost by it alone.
package enum BackupAnomaly: Sendable, Hashable, CustomStringConvertible {
  /// `Status.plist` is missing, so that it is unknown whether the backup was finished.
  case statusMissing
  /// `Status.plist` or `Info.plist` exists but was not read. No stored content depends on it.
  case propertyListUnreadable(name: String, reason: String)
  /// The manifest does not state whether the backup has a password.
  case encryptionNotStated
  /// The manifest claims a password, but neither the list of files nor a file is encrypted. The backup can be read like
  /// one without a password, but neither restored nor changed.
  case encryptionClaimed
  /// The manifest database is encrypted without padding, as by some tools.
  case databaseUnpadded
  /// The manifest database is in SQLite's write-ahead mode.
  case databaseInWriteAheadMode
  /// SQLite's log `Manifest.db-wal` contains a part of the list of files, or `Manifest.db-journal` reverts an
  /// incomplete change. Keyhaul applies either, as SQLite does.
  case listJournalRead(name: String)
  /// The recorded size of the keychain file differs from its actual size, which is used.
  case sizeDiffers(recorded: Int64, found: Int64)
  /// The recorded digest of the keychain file does not match. Each item is authenticated separately, so decrypted items
  /// are unchanged.
  case digestDiffers
  /// The backup was interrupted. `Status.plist` contains the progress. The content can be read, but not restored.
  case unfinished(state: String)
  /// A finding.
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
      "the device never finished the backup: \(MetadataFile.status.path) says \(Self.progress(state))"
    case .finding(let finding): finding.description
    }
  }
}

extension BackupAnomaly {
  /// Returns a clause about an unfinished backup, without the name of `Status.plist`.
  static func unfinishedClause(_ state: String) -> String {
    "it says \(progress(state)), so the device never finished the backup"
  }

  /// Returns the recorded state of an unfinished backup as a clause: `"uploading", not "finished"`
  private static func progress(_ state: String) -> String { "\(quoted(state)), not \"finished\"" }

  /// The anomaly as a finding, or `nil` if it is not one.
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

/// The purpose for which a backup is used. Some findings allow inspection but not a restore.
public enum BackupPurpose: Sendable, Hashable, CaseIterable {
  /// Inspection, verification, and extraction of files.
  case reading
  /// Export and comparison, which assume that all items are visible.
  case exporting
  /// Planning a restore.
  case planning
  /// Restoring to a device.
  case restoring
  /// Changing or removing the password.
  case rewriting
  /// Copying or sealing.
  case copying
}

extension BackupFinding {
  /// Returns whether the finding forbids a purpose. No finding forbids inspection.
  package func blocks(_ purpose: BackupPurpose) -> Bool {
    switch purpose {
    case .reading: false
    // The items of an unreadable keychain are unknown.
    case .exporting, .planning: preventsReadingKeychain || lacksManifest
    case .copying: lacksManifest
    case .restoring: blocksRestoring
    case .rewriting: blocksRewriting
    }
  }

  /// Whether the keychain file exists but is unreadable.
  package var preventsReadingKeychain: Bool { kind == .keychainMissing || kind == .keychainDamaged }

  /// Whether the manifest is unreadable, so that no key is available.
  private var lacksManifest: Bool { kind == .manifestUnreadable || kind == .manifestMissing }

  /// Whether no usable keybag exists, so that no item can be decrypted.
  package var preventsReadingKeybag: Bool { kind == .keybagUnusable || kind == .manifestMissing }

  /// Whether the finding forbids a restore.
  private var blocksRestoring: Bool {
    switch self {
    // Each item is decrypted unchanged.
    case .keychainInXML, .keychainKeysUnknown, .listNamesNotUTF8, .payloadsRenamed: false
    // SQLite and other readers of the list ignore complete pages after the last one, so a restore is not affected.
    // Other bytes indicate a truncated file, or a change by something other than SQLite.
    case .listTrailingBytes(_, let isWholePages): !isWholePages
    // The lost items are reported separately, with a confirmation.
    case .classKeysDamaged: false
    case .propertyListUnreadable(let name, _): name == MetadataFile.status.path
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .stateMissing, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual, .listDamaged, .listJournalUnread, .listUnreadable,
      .keychainMissing,
      .keychainDamaged, .keybagMismatch, .sealBroken:
      true
    }
  }

  /// Whether the finding forbids changing the password, which replaces the manifest's keybag and reads the list and the
  /// keychain. A rewritten list would lose the bytes after its last page.
  private var blocksRewriting: Bool {
    switch self {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual, .listTrailingBytes, .listDamaged, .listJournalUnread, .sealBroken:
      true
    // None of these depends on the password, and all stay as they are. Losses are reported in advance.
    case .propertyListUnreadable, .stateMissing, .keychainInXML, .keychainKeysUnknown, .keychainMissing,
      .keychainDamaged, .keybagMismatch, .listUnreadable, .listNamesNotUTF8, .payloadsRenamed:
      false
    }
  }

  /// The error for a forbidden purpose.
  package var refusal: KeyhaulError {
    switch self {
    case .falseClaim: KeyhaulError(.falseClaim, description)
    case .decryptedCopy: KeyhaulError(.decryptedCopy, description)
    case .passwordDenied: KeyhaulError(.passwordDenied, description)
    case .keychainMissing: KeyhaulError(.payloadMissing, description)
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .stateMissing,
      .propertyListUnreadable, .listTrailingBytes, .listDamaged, .listUnreadable, .keychainDamaged, .keychainInXML,
      .keychainKeysUnknown, .keybagMismatch, .listJournalUnread, .listNamesNotUTF8, .payloadsRenamed, .sealBroken,
      .wrapsUnusual:
      KeyhaulError(.damaged, description)
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

  var anomaly: BackupAnomaly { .propertyListUnreadable(name: name, reason: reason) }
}

/// A difference between a backup and its seal.
public struct SealViolation: Sendable, Hashable {
  /// The path of the file in the backup, or of the seal if the violation concerns no other file.
  public let file: String
  /// The difference as a clause, without the file.
  public let reason: String
  /// Whether a sealed file is missing.
  package let isFileMissing: Bool

  package init(_ file: String, _ reason: Reason) {
    self.file = file
    self.reason = reason.text
    isFileMissing = if case .missing = reason { true } else { false }
  }

  /// The kinds of violations.
  package enum Reason {
    case changed, missing, added
    /// The format of the seal is invalid.
    case unreadable(String)
    /// The code does not match the list.
    case forged
    /// The seal is unkeyed, although the backup has a password.
    case notKeyed
    /// The seal is keyed, although the backup has no password.
    case needlesslyKeyed
    /// The list of an unkeyed seal does not match its digest.
    case listChanged

    fileprivate var text: String {
      switch self {
      case .changed: "it has changed since the backup was sealed"
      case .missing: "it was sealed, but is missing"
      case .added: "it is present, but was not sealed"
      case .unreadable(let reason): reason
      case .forged: "its authentication code does not match: it was made for another backup, or has changed since"
      case .notKeyed: "it is a plain list of digests, which anyone can write, although the backup has a password"
      case .needlesslyKeyed: "it was made with a password, but this backup says that it has none"
      case .listChanged: "its digest does not match: the seal has changed since it was made"
      }
    }
  }
}
