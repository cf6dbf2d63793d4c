package import Basics
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
  package enum Kind: String, Sendable, CaseIterable {
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

  /// The file that it is in: one of the backup's own, or domain and path.
  package var place: String {
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

  /// Whether nobody should take the backup for what a device wrote, though nothing may be lost. A decrypted copy says
  /// itself that it is none.
  package var isDamage: Bool { isLoss || (forbids(.restoring) && self != .decryptedCopy) }
}

extension ArchiveFinding: CustomStringConvertible {
  /// The fact found, as a clause without its place.
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
      "it is stored next to \(StoredPart.database.path), and \(HumanReadable.bytes(byteCount)) of it are not read: \(reason)"
    case .listDamaged(let readable, let lost, let reason):
      "\(reason); \(HumanReadable.count(readable, "row")) can be read, " + Self.lost(lost)
    case .listNamesNotUTF8(_, let count, let first):
      "\(HumanReadable.count(count, "entry", plural: "entries")) \(count == 1 ? "has" : "have") a name that is not UTF-8, "
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
    case let count?: "\(HumanReadable.grouped(count)) cannot"
    }
  }

  private static func renamed(_ count: Int, _ unread: Int, _ first: String) -> String {
    let found =
      "\(HumanReadable.count(count, "payload")) \(count == 1 ? "has" : "have") a name that no device uses: "
      + "\(count == 1 ? "" : "the first is ")\(quoted(first))"
    guard unread > 0 else { return found }
    let others =
      "\(HumanReadable.count(unread, "file")) \(unread == 1 ? "repeats" : "repeat") a payload under a second name "
      + "and \(unread == 1 ? "is" : "are") not read"
    return count > 0 ? "\(found); \(others)" : "\(others): \(unread == 1 ? "" : "the first is ")\(quoted(first))"
  }

  private static let shownKeyCount = 5

  private static func shown(_ keys: [String]) -> String {
    let names = keys.prefix(shownKeyCount).map(quoted)
    return names.joined(separator: ", ") + (keys.count > names.count ? ", ..." : "")
  }
}

/// Something unusual about a backup that was tolerated. None of them loses an item by itself.
package enum ArchiveNote: Sendable, Hashable, CustomStringConvertible {
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

  package var description: String {
    switch self {
    case .statusMissing: "there is no Status.plist to show that the backup was finished"
    case .propertyListUnreadable(let name, let reason): "\(name) could not be read: \(reason)"
    case .encryptionNotStated: "Manifest.plist does not say whether there is a password; Keyhaul looks at its contents"
    case .encryptionClaimed:
      "\(StoredPart.manifest.path) says that the backup is encrypted, but its manifest is not, and no file has a key"
    case .databaseUnpadded: "the manifest database was encrypted without padding"
    case .databaseInWriteAheadMode: "the manifest database was left in write-ahead mode"
    case .listJournalRead(let name):
      name == StoredPart.databaseLog.path
        ? "part of the manifest comes from its log, \(name)"
        : "the manifest is read as it was before an unfinished change, which \(name) undoes"
    case .sizeDiffers(let recorded, let found):
      "the manifest records \(HumanReadable.grouped(recorded)) bytes for the keychain file, which has \(HumanReadable.grouped(found))"
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

/// What a backup is opened for. What may be gone around to look at it may not be gone around to restore it.
public enum ArchiveUse: Sendable, Hashable, CaseIterable {
  /// Looked at, checked, files taken out of it.
  case reading
  /// Its items taken for all that it holds: exported, compared.
  case exporting
  /// A plan of what a restore of it would do.
  case planning
  /// Restored to a device.
  case restoring
  /// Given another password, or none.
  case rewriting
  /// Copied as it is, or sealed.
  case copying
}

extension ArchiveFinding {
  /// Whether a backup with it is refused for a use; nothing that is a finding keeps anybody from looking.
  package func forbids(_ use: ArchiveUse) -> Bool {
    switch use {
    case .reading: false
    // Of a keychain that is not read, none of its items is not what it holds.
    case .exporting, .planning: hidesKeychain || lacksManifest
    case .copying: lacksManifest
    case .restoring: forbidsRestoring
    case .rewriting: forbidsRewriting
    }
  }

  /// Whether there is a keychain of which nothing can be read.
  package var hidesKeychain: Bool { kind == .keychainMissing || kind == .keychainDamaged }

  /// Whether no manifest can be read, so that no key can be had.
  private var lacksManifest: Bool { kind == .manifestUnreadable || kind == .manifestMissing }

  /// Whether there is no keybag that can be used, so that no item can be decrypted.
  package var leavesNoKeybag: Bool { kind == .keybagUnusable || kind == .manifestMissing }

  private var forbidsRestoring: Bool {
    switch self {
    // Each item of it opens as it was written.
    case .keychainInXML, .keychainKeysUnknown, .listNamesNotUTF8, .payloadsRenamed: false
    // No reader of the list comes to whole pages behind the last one, SQLite's neither, so that a restore reads what it
    // would read without them. Other bytes tell of a file that was cut, or written to by something else than SQLite.
    case .listTrailingBytes(_, let isWholePages): !isWholePages
    // What an item loses by it is the item's, and asked about.
    case .classKeysDamaged: false
    case .propertyListUnreadable(let name, _): name == StoredPart.status.path
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .stateMissing, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual, .listDamaged, .listJournalUnread, .listUnreadable,
      .keychainMissing,
      .keychainDamaged, .keybagMismatch, .sealBroken:
      true
    }
  }

  /// What changes a password writes the manifest's keybag again, and reads the list and the keychain. A list that it writes
  /// again would no longer have what stands behind its last page.
  private var forbidsRewriting: Bool {
    switch self {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual, .listTrailingBytes, .listDamaged, .listJournalUnread, .sealBroken:
      true
    // None of these depends on the password, and each stays as it is; where something is lost, that is said before.
    case .propertyListUnreadable, .stateMissing, .keychainInXML, .keychainKeysUnknown, .keychainMissing,
      .keychainDamaged, .keybagMismatch, .listUnreadable, .listNamesNotUTF8, .payloadsRenamed:
      false
    }
  }

  /// The refusal of a use that it forbids.
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

/// A property list beside the list of files that is there and cannot be read: `Status.plist` or `Info.plist`, without
/// which a backup opens all the same.
package struct UnreadablePropertyList: Sendable, Equatable {
  /// Of the file.
  package let name: String
  /// Why it cannot be read.
  package let error: KeyhaulError

  init(_ part: StoredPart, _ error: KeyhaulError) {
    name = part.path
    self.error = error
  }

  /// What is wrong with it, without its name in front.
  package var reason: String {
    error.reason.hasPrefix("\(name): ") ? String(error.reason.dropFirst(name.count + 2)) : error.reason
  }

  var note: ArchiveNote { .propertyListUnreadable(name: name, reason: reason) }
}

/// One thing by which a backup is not what was sealed.
public struct SealBreak: Sendable, Hashable {
  /// The file it concerns, by its path in the backup: the seal itself where nothing tells which other one.
  public let file: String
  /// The fact, as a clause without the file.
  public let reason: String
  /// Whether it is a file that was sealed and is not there.
  package let isNotFound: Bool

  package init(_ file: String, _ reason: Reason) {
    self.file = file
    self.reason = reason.text
    isNotFound = if case .missing = reason { true } else { false }
  }

  /// How a file, or the seal, is not what it should be.
  package enum Reason {
    case changed, missing, added
    /// The seal follows no form.
    case unreadable(String)
    /// The code over the list does not fit.
    case forged
    /// A list of digests, where whoever has the password makes a code.
    case notKeyed
    /// A code of a password, where there is none.
    case needlesslyKeyed
    /// A list of digests that does not fit its own digest.
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
