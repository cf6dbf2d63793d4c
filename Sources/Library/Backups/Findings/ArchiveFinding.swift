import Basics
import KeychainFormats

/// A part of a backup that is not as a device leaves it, and that reading goes around: everything else opens all the same.
public enum ArchiveFinding: Sendable, Hashable {
  /// Nothing of the manifest can be read: neither whether there is a password, nor the keybag.
  case manifestUnreadable(reason: String)
  /// There is no `Manifest.plist`, and `Manifest.db` is read as an unencrypted list.
  case manifestMissing
  /// The manifest does not say its version.
  case versionMissing
  /// There is no keybag, or none whose keys can be had.
  case keybagUnusable(reason: String)
  /// Some class keys of the keybag do not unwrap, though others do.
  case classKeysDamaged(reason: String)
  /// `Status.plist` does not say how far the device came.
  case stateMissing
  /// `Status.plist` or `Info.plist` is there and cannot be read.
  case propertyListUnreadable(name: String, reason: String)
  /// The manifest says that there is a password, and what is stored is in clear.
  case falseClaim(reason: String)
  /// It is a decrypted copy of a backup with a password, as this project writes them, and says so: to be read alone.
  case decryptedCopy
  /// The manifest says that there is no password, and what it holds was made under one.
  case passwordDenied(reason: String)
  /// The keybag wraps class keys otherwise than any device does: with a layer too many, or without the password's.
  case wrapsUnusual(reason: String)
  /// Bytes stand behind the last page that the list of files counts, which has nothing of them.
  ///
  /// Whole pages SQLite itself leaves where it lays a file out for more than it comes to need. Other bytes were added, or
  /// are what a cut has left of the last block of an encrypted list.
  case listTrailingBytes(count: Int, isWholePages: Bool)
  /// A log or a journal of SQLite's stands beside `Manifest.db`, and so many bytes of it are not read: it does not fit the
  /// list, or their change was not finished.
  case listJournalUnread(name: String, byteCount: Int64, reason: String)
  /// The list of files fails its check, or is cut short: so many of its rows can be read, and so many cannot, where anything tells.
  case listDamaged(readable: Int, lost: Int?, reason: String)
  /// Rows of the list of files have a domain, a path, a link's target or an attribute's name that is not UTF-8.
  case listNamesNotUTF8(name: String, count: Int, first: String)
  /// Payloads lie under other names than a device gives them; `unread` counts files with a second name of one.
  case payloadsRenamed(count: Int, unread: Int, first: String)
  /// Nothing of the list of files can be read.
  case listUnreadable(name: String, reason: String)
  /// The list of files names a keychain file that is not stored.
  case keychainMissing(reason: String)
  /// The keychain file is there, and nothing of it can be read.
  case keychainDamaged(reason: String)
  /// The keychain file is a property list in XML, as no device writes it.
  case keychainInXML
  /// The keychain file has keys that stand for no kind of item.
  case keychainKeysUnknown([String])
  /// The keychain file names another keybag than the manifest has, which devices refuse.
  case keybagMismatch(file: String, keybag: String)
  /// A file is not what was sealed, or the seal is not what was made.
  case sealBroken(SealBreak)

  /// The raw value is what machine-readable reports say.
  public enum Kind: String, Sendable, CaseIterable {
    /// `Manifest.plist` cannot be read.
    case manifestUnreadable = "manifest-unreadable"
    /// There is no `Manifest.plist` beside an unencrypted `Manifest.db`.
    case manifestMissing = "manifest-missing"
    /// `Manifest.plist` says no version.
    case versionMissing = "version-missing"
    /// The manifest holds no keybag that can be used.
    case keybagUnusable = "keybag-unusable"
    /// Class keys of the keybag do not unwrap.
    case classKeysDamaged = "class-keys-damaged"
    /// `Status.plist` does not say whether the backup was finished.
    case stateMissing = "state-missing"
    /// `Info.plist` or `Status.plist` cannot be read.
    case propertyListUnreadable = "property-list-unreadable"
    /// The manifest claims what is not so.
    case falseClaim = "false-claim"
    /// The manifest says that it is a decrypted copy, which no device takes.
    case decryptedCopy = "decrypted-copy"
    /// The manifest denies the password that its parts were made under.
    case passwordDenied = "password-denied"
    /// Class keys are wrapped as no device wraps them.
    case wrapsUnusual = "wraps-unusual"
    /// Bytes stand behind the last page of `Manifest.db`.
    case listTrailingBytes = "list-trailing-bytes"
    /// A log or a journal beside `Manifest.db` is not read, or not to its end.
    case listJournalUnread = "list-journal-unread"
    /// A part of the list of files is damaged.
    case listDamaged = "list-damaged"
    /// Names in the list of files are not UTF-8.
    case listNamesNotUTF8 = "list-names-not-utf8"
    /// Payloads have other names than a device gives them.
    case payloadsRenamed = "payloads-renamed"
    /// Nothing of the list of files can be read.
    case listUnreadable = "list-unreadable"
    /// The listed keychain file is not stored.
    case keychainMissing = "keychain-missing"
    /// Nothing of the keychain file can be read.
    case keychainDamaged = "keychain-damaged"
    /// The keychain file is a property list in XML.
    case keychainInXML = "keychain-in-xml"
    /// The keychain file has keys of no kind of item.
    case keychainKeysUnknown = "keychain-keys-unknown"
    /// The keychain file names another keybag.
    case keybagMismatch = "keybag-mismatch"
    /// A file is not what `Keyhaul.seal` lists, or nothing vouches for that list.
    case sealBroken = "seal-broken"
  }

  /// What it is, for a program to switch on.
  public var kind: Kind {
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

  /// The file that it is in: one of the backup's own, or domain and path.
  public var place: String {
    switch self {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual:
      StoredPart.manifest.path
    case .stateMissing: StoredPart.status.path
    case .propertyListUnreadable(let name, _), .listUnreadable(let name, _),
      .listJournalUnread(let name, _, _), .listNamesNotUTF8(let name, _, _):
      name
    case .payloadsRenamed(_, _, let first): first
    case .listTrailingBytes, .listDamaged: StoredPart.database.path
    case .keychainMissing, .keychainDamaged, .keychainInXML, .keychainKeysUnknown, .keybagMismatch:
      Self.keychainName
    case .sealBroken(let fault): fault.file
    }
  }

  private static let keychainName = "KeychainDomain/keychain-backup.plist"

  /// Whether something of the backup cannot be had for it.
  public var isLoss: Bool {
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

  /// Whether nobody should take the backup for what a device wrote, though nothing may be lost. A decrypted copy says
  /// itself that it is none.
  public var isDamage: Bool { isLoss || (forbids(.restoring) && self != .decryptedCopy) }
}

extension ArchiveFinding: CustomStringConvertible {
  /// The fact found, as a clause without its place.
  public var fact: String {
    switch self {
    case .manifestMissing: "it is missing; the manifest database was read as an unencrypted manifest"
    case .versionMissing: "it does not say its version"
    case .stateMissing: "it does not say whether the backup was finished"
    case .decryptedCopy: "it says that this is a decrypted copy; only its keychain items need a password"
    case .manifestUnreadable(let reason), .keybagUnusable(let reason), .classKeysDamaged(let reason),
      .propertyListUnreadable(_, let reason), .falseClaim(let reason), .passwordDenied(let reason),
      .wrapsUnusual(let reason),
      .listUnreadable(_, let reason), .keychainMissing(let reason), .keychainDamaged(let reason):
      reason
    case .keybagMismatch(let file, let keybag):
      "the keychain file names keybag \(file), Manifest.plist contains \(keybag)"
    case .listTrailingBytes(let count, _):
      "\(Amounts.count(count, "byte")) \(count == 1 ? "follows" : "follow") its last page"
    case .listJournalUnread(_, let byteCount, let reason):
      "it is stored next to \(StoredPart.database.path), and \(Amounts.bytes(byteCount)) of it are not read: \(reason)"
    case .listDamaged(let readable, let lost, let reason):
      "\(reason); \(Amounts.count(readable, "row")) can be read, " + Self.lost(lost)
    case .listNamesNotUTF8(_, let count, let first):
      "\(Amounts.count(count, "entry", plural: "entries")) \(count == 1 ? "has" : "have") a name that is not UTF-8, "
        + "shown with %F5 for the byte F5; \(count == 1 ? "it" : "the first") is \(quoted(first))"
    case .payloadsRenamed(let count, let unread, let first): Self.renamed(count, unread, first)
    case .keychainInXML: "it is an XML property list, which no device writes"
    case .sealBroken(let fault): fault.reason
    case .keychainKeysUnknown(let keys): "it has keys that do not name a kind of item: \(Self.shown(keys))"
    }
  }

  /// The fact with its place in front.
  public var description: String { fact.contains(place) ? fact : "\(place): \(fact)" }

  private static func lost(_ count: Int?) -> String {
    switch count {
    case nil: "the number of unreadable rows is unknown"
    case 0?: "no row is lost"
    case let count?: "\(Amounts.grouped(count)) cannot"
    }
  }

  private static func renamed(_ count: Int, _ unread: Int, _ first: String) -> String {
    let found =
      "\(Amounts.count(count, "payload")) \(count == 1 ? "has" : "have") another name than a device gives, "
      + "\(count == 1 ? "" : "the first ")\(quoted(first))"
    guard unread > 0 else { return found }
    let others =
      "\(Amounts.count(unread, "file")) \(unread == 1 ? "has" : "have") a second name of a payload "
      + "and \(unread == 1 ? "is" : "are") not read"
    return count > 0 ? "\(found); \(others)" : "\(others), \(unread == 1 ? "" : "the first ")\(quoted(first))"
  }

  private static let shownKeyCount = 5

  private static func shown(_ keys: [String]) -> String {
    let names = keys.prefix(shownKeyCount).map(quoted)
    return names.joined(separator: ", ") + (keys.count > names.count ? ", ..." : "")
  }
}
