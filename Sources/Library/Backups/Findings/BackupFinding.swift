import Basics

/// An anomaly in a part of a backup, which reports list with an id. The other parts can be opened.
///
/// New kinds of damage belong here. `ToleratedAnomaly` also has anomalies without an id, by which no item is lost.
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
  /// `Status.plist` does not contain the state of the backup.
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
  /// If they are whole pages, SQLite may have reserved them. Otherwise, someone appended the bytes, or they remain from
  /// the last block of an encrypted list.
  case listTrailingBytes(count: Int, isWholePages: Bool)
  /// An SQLite log or journal next to `Manifest.db` is ignored, completely or in part. It does not match the list, or it
  /// ends with an incomplete change. `byteCount` is the number of ignored bytes.
  case listJournalUnread(name: String, byteCount: Int64, reason: String)
  /// The list of files fails its integrity check or is truncated. Some rows are readable. `lost` is the number of
  /// unreadable rows, or `nil` if it is unknown.
  case listDamaged(readable: Int, lost: Int?, reason: String)
  /// Rows of the list of files have a domain, path, link target, or attribute name that is not UTF-8.
  case listNamesNotUTF8(name: String, count: Int, first: String)
  /// Payloads are at unusual paths. `count` of them are read. `unread` other files at such paths are ignored, because
  /// their payloads are also stored under another name.
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

  /// The kinds of findings. Machine-readable reports contain the raw values.
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
    /// `Status.plist` does not contain the state of the backup.
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
    /// A log or journal next to `Manifest.db` is ignored, completely or in part.
    case listJournalUnread = "list-journal-unread"
    /// The list of files is partly damaged.
    case listDamaged = "list-damaged"
    /// The list of files contains names that are not UTF-8.
    case listNamesNotUTF8 = "list-names-not-utf8"
    /// Payloads are at unusual paths.
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
    /// The keychain file refers to a keybag other than the manifest's.
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

  /// Whether the backup may differ from what its device wrote, even if nothing is lost. A decrypted copy does
  /// not count, because its manifest states that it differs.
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
      "\(reason); " + Self.rowCounts(readable: readable, lost: lost)
    case .listNamesNotUTF8(_, let count, let first):
      "\(HumanReadable.count(count, "entry", plural: "entries")) \(count == 1 ? "has" : "have") a name that is not UTF-8, "
        + "shown with %F5 for the byte F5; \(count == 1 ? "it" : "the first") is \(quoted(first))"
    case .payloadsRenamed(let count, let unread, let first):
      Self.renamedPayloads(count, ignoredCount: unread, first: first)
    case .keychainInXML: "it is an XML property list, which no device writes"
    case .sealBroken(let violation): violation.reason
    case .keychainKeysUnknown(let keys): "it has keys that do not name a kind of item: \(Self.shown(keys))"
    }
  }

  /// The finding as a clause with its file.
  public var description: String { fact.contains(file) ? fact : "\(file): \(fact)" }

  private static func rowCounts(readable: Int, lost: Int?) -> String {
    let readableRows = "\(HumanReadable.count(readable, "row")) can be read"
    return switch lost {
    case nil: "\(readableRows), the number of unreadable rows is unknown"
    case 0?: "\(readableRows), no row is lost"
    case let lost?: "\(readableRows), \(HumanReadable.grouped(lost)) cannot"
    }
  }

  private static func renamedPayloads(_ count: Int, ignoredCount: Int, first: String) -> String {
    let renamed =
      "\(HumanReadable.count(count, "payload")) \(count == 1 ? "has" : "have") a name that no device uses: "
      + "\(count == 1 ? "" : "the first is ")\(quoted(first))"
    guard ignoredCount > 0 else { return renamed }
    let ignored =
      "\(HumanReadable.count(ignoredCount, "file")) \(ignoredCount == 1 ? "repeats" : "repeat") a payload under a second "
      + "name and \(ignoredCount == 1 ? "is" : "are") not read"
    if count > 0 { return "\(renamed); \(ignored)" }
    // All files at unusual paths are ignored, so the first of them is named.
    return "\(ignored): \(ignoredCount == 1 ? "" : "the first is ")\(quoted(first))"
  }

  private static let shownKeyCount = 5

  private static func shown(_ keys: [String]) -> String {
    let names = keys.prefix(shownKeyCount).map(quoted)
    return names.joined(separator: ", ") + (keys.count > names.count ? ", ..." : "")
  }
}
