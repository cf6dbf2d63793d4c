public import Basics
import KeychainFormats
package import SystemPackage

extension KeyhaulError.Domain {
  /// Errors of reading or writing a backup. Problems of single items are in `BackupItem.Failure`.
  public static let backup = Self("backup")
}

extension KeyhaulError.Code {
  private static func backup(_ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy) -> Self {
    Self(rawValue, of: .backup, category, summary, advice: advice)
  }

  /// The path does not exist.
  public static let notFound = backup("not-found", .notFound, "there is no such backup", advice: "check the path")
  /// The file or folder is complete, but not a backup.
  public static let notABackup = backup(
    "not-a-backup", .refused, "this is not a backup", advice: "the folder named after the device's identifier")
  /// The kind of backup or container is not supported.
  public static let unsupported = backup(
    "unsupported", .refused, "this kind of backup is not supported",
    advice: "make a new backup with a current Finder, iTunes or idevicebackup2")
  /// A backup of iOS 10.0 with a password. The records in its manifest are encrypted, and are never rewritten.
  public static let sealedList = backup(
    "sealed-list", .refused, "the records in its manifest are encrypted with its password, as iOS 10.0 wrote them",
    advice: "export its contents, or update the device to iOS 10.1 or later and back it up again")
  /// The backup claims to have a password, but all of its content is unencrypted.
  public static let falseClaim = backup(
    "false-claim", .refused, "the backup says that it is encrypted, but it is not",
    advice: "don't trust this copy; back up the device again")
  /// The backup claims to have no password, but was created with one.
  public static let passwordDenied = backup(
    "password-denied", .refused, "the backup says that it has no password, but it was made with one",
    advice: "don't trust this copy; use the source device's own copy")
  /// The backup is a decrypted copy, which devices refuse.
  public static let decryptedCopy = backup(
    "decrypted-copy", .refused, "this is a decrypted copy, which can only be read",
    advice: "the backup that it was made from")
  /// The format requires a file, but the backup comes from a stream.
  public static let notStreamable = backup(
    "not-streamable", .refused, "this kind of backup cannot be read from a stream",
    advice: "save it in a file, and give the path of that file")
  /// The backup contains an entry, link, or table that no real backup has.
  public static let hostile = backup(
    "hostile", .refused, "refused to read the backup", advice: "don't trust this file; nothing was written")
  /// The backup exceeds a limit.
  public static let overLimit = backup(
    "over-limit", .refused, "refused to read the backup", advice: "don't trust this file")
  /// The backup ends too early.
  public static let truncated = backup(
    "truncated", .damaged, "the backup is cut short", advice: "another copy; verify shows whether a copy is complete")
  /// The backup is damaged.
  public static let damaged = backup("damaged", .damaged, "the backup is damaged", advice: .anotherCopy)
  /// The device did not finish the backup.
  public static let unfinished = backup(
    "unfinished", .damaged, "the backup was never finished",
    advice: "export its contents, or back up the device again and let it finish")
  /// `Manifest.plist` is missing, so that it is unknown whether the backup was finished.
  public static let manifestMissing = backup(
    "manifest-missing", .damaged, "this is an unfinished backup",
    advice: "another copy, or back up the device again and let it finish")
  /// A file in the manifest is missing.
  public static let payloadMissing = backup(
    "payload-missing", .damaged, "the backup is not complete", advice: .anotherCopy)
  /// The backup is complete, but contains no keychain.
  public static let noKeychain = backup(
    "no-keychain", .refused, "the backup contains no keychain",
    advice: "make a new backup; if it has a password, its keychain also works on other devices")
  /// The class key that protects a part of the backup is not available.
  public static let keyUnavailable = backup(
    "key-unavailable", .wrongPassword, "part of the backup cannot be decrypted",
    advice: "the password set when the backup was made")
  /// The backup changed while it was read.
  public static let changed = backup(
    "changed", .failed, "the backup changed while it was being read",
    advice: "run it again when no other program writes to the backup; nothing was changed")
  /// The system could not read the backup.
  public static let unreadable = backup(
    "unreadable", .failed, "could not read the backup", advice: "check the permissions and the disk")
  /// The system could not write the backup.
  public static let unwritable = backup(
    "unwritable", .failed, "could not write the backup",
    advice: "check the permissions and the disk; no partial file was left")
  /// The target's file system is full.
  public static let noSpace = backup(
    "no-space", .failed, "could not write the backup", advice: "free space and run it again; no partial file was left")
  /// A stream was closed early, so its content is incomplete.
  public static let streamBroken = backup(
    "stream-broken", .failed, "could not write the backup", advice: "run it again: the output is incomplete")
  /// No temporary file can be created, or its file system is full.
  public static let noTemporarySpace = backup(
    "no-temporary-space", .failed, "could not read the backup", advice: .keepInMemory)
  /// The library for container files cannot be used.
  public static let libraryMissing = backup(
    "library-missing", .failed, "libarchive, which packs and unpacks a backup in one file, cannot be used",
    advice: "install libarchive 3.5 or newer (libarchive13 on Debian and Ubuntu), or use a backup in a folder")
  /// The destination already exists.
  public static let occupied = backup(
    "occupied", .usage, "could not write the backup", advice: "use another name, or allow it to be replaced")
  /// Another process reads or changes the backup.
  public static let busy = backup("busy", .busy, "the backup is in use", advice: .waitForOtherProcess)
  /// The caller stopped the operation.
  public static let interrupted = backup("interrupted", .failed, "stopped", advice: "run it again; nothing was changed")

  /// All codes for a backup, in the order of reports.
  package static let ofBackup: [Self] = [
    .notFound, .notABackup, .unsupported, .sealedList, .falseClaim, .passwordDenied, .decryptedCopy, .notStreamable,
    .hostile, .overLimit, .truncated, .damaged, .unfinished, .manifestMissing, .payloadMissing, .noKeychain,
    .keyUnavailable, .changed, .unreadable, .unwritable, .noSpace, .streamBroken, .noTemporarySpace, .libraryMissing,
    .occupied, .busy, .interrupted,
  ]

  /// The keychain file was encrypted for another keybag than the backup's.
  public static let keybagMismatch = backup(
    "keybagMismatch", .damaged, "its keychain belongs to another keybag", advice: .anotherCopy)
  /// The backup has no password, and its class keys are not bound to a device. No device writes such a backup, and no
  /// restore accepts it.
  public static let unboundKeychain = backup(
    "unboundKeychain", .refused, "it contains something that no device writes",
    advice: "don't trust this backup; use the source device's own copy")
  /// A password was given for a backup without one, so the caller may have meant a different backup.
  public static let passwordNotNeeded = backup(
    "passwordNotNeeded", .refused, "it has no password, but one was given",
    advice: "another backup; or no password, if this is the right backup")

  /// A write that failed, before the path is known (`BackupInstaller.explain`).
  static let writing = backup(
    "writing", .failed, "could not write the backup", advice: "check the permissions and the disk")
}

extension KeyhaulError {
  /// Creates an error for a failed system call. If the system is short of descriptors or memory, the code is
  /// `.unreadable`, because the backup is not the cause.
  ///
  /// - Parameters:
  ///   - code: The error code for all other failures.
  ///   - reason: The details with the system's error.
  ///   - errno: The system's error.
  package init(_ code: Code, _ reason: String, of errno: Errno) {
    guard errno.isResourceShortage else {
      self.init(code, reason, errno: errno)
      return
    }
    self.init(
      .unreadable, reason,
      meaning: ErrorMeaning(
        .failed, "could not read the backup", advice: "end other programs, or raise the limit of the shell (ulimit)"),
      errno: errno)
  }

  /// Creates the error of a failed write, before the path is known.
  package static func writing(_ errno: Errno) -> KeyhaulError { writing(errno.reason, errno) }

  /// Creates the error of a failed write with a reason, before the path is known.
  package static func writing(_ reason: String, _ errno: Errno? = nil) -> KeyhaulError {
    KeyhaulError(.writing, reason, errno: errno)
  }

  /// The error for a password that was given for a backup without one.
  static var passwordNotNeeded: KeyhaulError {
    KeyhaulError(.passwordNotNeeded, "it is not encrypted: it may be the wrong backup, and anyone may have made it")
  }

  /// Creates the error for a keychain file whose keybag identifier differs from the one in `Manifest.plist`.
  static func keybagMismatch(file: String, keybag: String) -> KeyhaulError {
    KeyhaulError(
      .keybagMismatch, "the keychain file names keybag \(file), but Manifest.plist contains \(keybag)",
      meaning: ErrorMeaning(
        .damaged,
        isSame(file, as: keybag)
          ? "its keychain spells the keybag's identifier differently" : "its keychain belongs to another keybag",
        advice: "another copy; \(meaning(ofName: file, for: keybag))"))
  }

  /// Returns the meaning of different keybag identifiers in the keychain file and the manifest.
  package static func meaning(ofName name: String, for keybag: String) -> String {
    isSame(name, as: keybag)
      ? "the two identifiers differ only in case, and no device writes such a pair"
      : "the backup was assembled from parts of two backups"
  }

  private static func isSame(_ name: String, as keybag: String) -> Bool { name.lowercased() == keybag.lowercased() }
}

extension KeyhaulError {
  /// Creates an error for a part of a backup from the error of a lower layer.
  ///
  /// - Parameter part: The part, such as "Manifest.plist" or "the keychain file".
  package init(_ error: any ExplainedError, in part: String) {
    let code: Code =
      switch error.category {
      case .wrongPassword: .keyUnavailable
      case .refused:
        switch (error as? FormatError)?.code {
        case .overLimit: .overLimit
        case .forbidden: .hostile
        default: .unsupported
        }
      // A keybag contains its length. Other formats that end early may be changed or truncated.
      case .damaged: (error as? FormatError)?.isKeybagCut == true ? .truncated : .damaged
      default: .unreadable
      }
    self.init(code, "\(part): \(error.reason)", errno: (error as? KeyhaulError)?.errno)
  }
}

extension FormatError {
  fileprivate var isKeybagCut: Bool { format == .keybag && code == .truncated }
}

/// Runs a closure and converts its error to an error that names a part of a backup.
package func translatingErrors<Value: ~Copyable, Failure: ExplainedError>(
  in part: String, _ body: () throws(Failure) -> Value
) throws(KeyhaulError) -> Value {
  try converting({ KeyhaulError($0, in: part) }, body)
}

/// Runs a system call for a path and adds the path to its error.
package func opened<Value: ~Copyable>(
  _ path: String, _ body: () throws(Errno) -> Value
) throws(KeyhaulError) -> Value {
  try converting(
    { KeyhaulError($0.isNotFound ? .notFound : .unreadable, "\(quoted(path)): \($0.reason)", of: $0) }, body)
}

/// Returns an untrusted name in quotes for an error.
package func quoted(_ name: String) -> String { UntrustedText.quoted(name) }
