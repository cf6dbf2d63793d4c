package import Basics

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

  /// Whether the keychain file is unreadable, or is listed but not stored.
  package var preventsReadingKeychain: Bool { kind == .keychainMissing || kind == .keychainDamaged }

  /// Whether the manifest is unreadable or missing, so that no key is available.
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
    // The items that are lost are reported separately, and the user must accept their loss.
    case .classKeysDamaged: false
    case .propertyListUnreadable(let name, _): name == MetadataFile.status.path
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .stateMissing, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual, .listDamaged, .listJournalUnread, .listUnreadable,
      .keychainMissing,
      .keychainDamaged, .keybagMismatch, .sealBroken:
      true
    }
  }

  /// Whether the finding forbids changing the password. The change replaces the manifest's keybag, and reads the list of
  /// files and the keychain. A rewritten list would lose the bytes after its last page.
  private var blocksRewriting: Bool {
    switch self {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual, .listTrailingBytes, .listDamaged, .listJournalUnread, .sealBroken:
      true
    // These findings do not depend on the password, and a new password leaves them unchanged. Losses are reported in
    // advance.
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
