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
  public func forbids(_ use: ArchiveUse) -> Bool {
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
  public var hidesKeychain: Bool { kind == .keychainMissing || kind == .keychainDamaged }

  /// Whether no manifest can be read, so that no key can be had.
  private var lacksManifest: Bool { kind == .manifestUnreadable || kind == .manifestMissing }

  /// Whether there is no keybag that can be used, so that no item can be decrypted.
  public var leavesNoKeybag: Bool { kind == .keybagUnusable || kind == .manifestMissing }

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
  package var refusal: BackupArchiveError {
    switch self {
    case .falseClaim: BackupArchiveError(.falseClaim, description)
    case .decryptedCopy: BackupArchiveError(.decryptedCopy, description)
    case .passwordDenied: BackupArchiveError(.passwordDenied, description)
    case .keychainMissing: BackupArchiveError(.payloadMissing, description)
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .stateMissing,
      .propertyListUnreadable, .listTrailingBytes, .listDamaged, .listUnreadable, .keychainDamaged, .keychainInXML,
      .keychainKeysUnknown, .keybagMismatch, .listJournalUnread, .listNamesNotUTF8, .payloadsRenamed, .sealBroken,
      .wrapsUnusual:
      BackupArchiveError(.damaged, description)
    }
  }
}
