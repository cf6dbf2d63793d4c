public import Basics
import KeychainFormats

/// Why an archive's keychain could not be opened as a whole. What happens to a single item is `ArchivedItem.Failure`
/// instead.
public struct ArchivedKeychainError: ExplainedError {
  /// Why the keychain as a whole could not be opened.
  public enum Code: String, Sendable {
    /// A part below failed; its own words are carried on.
    case underlying
    /// The keychain file was sealed for another keybag than the archive's.
    case keybagMismatch
    /// Without a password, and with class keys that no hardware binds: no device writes it, and no restore takes it.
    case unboundKeychain
    /// A password was given for a backup that has none: another backup is meant.
    case passwordNotNeeded
  }

  /// Why, for a program to switch on.
  public let code: Code
  /// What is said of every error of its kind; of `.underlying` what the part below says.
  public let meaning: ErrorMeaning
  /// The fact found, with its place.
  public let reason: String
  /// The error of a part below that this one carries on.
  package let underlying: (any ExplainedError)?

  /// Carries on what a part below says.
  package init(_ error: some ExplainedError) {
    code = .underlying
    meaning = error.meaning
    reason = error.reason
    underlying = error
  }

  init(_ code: Code, _ meaning: ErrorMeaning, _ reason: String) {
    self.code = code
    self.meaning = meaning
    self.reason = reason
    underlying = nil
  }

  static func passwordNotNeeded() -> ArchivedKeychainError {
    ArchivedKeychainError(
      .passwordNotNeeded,
      ErrorMeaning(
        .refused, "it has no password, but one was given",
        advice: "another backup; or no password, if this is the right backup"),
      "it is not encrypted: it may be the wrong backup, and anyone may have made it")
  }

  private init(keybagOfFile file: String, ofManifest keybag: String) {
    code = .keybagMismatch
    meaning = ErrorMeaning(
      .damaged,
      Self.isSame(file, as: keybag)
        ? "its keychain spells the keybag's identifier differently" : "its keychain belongs to another keybag",
      advice: "another copy; \(Self.meaning(ofName: file, for: keybag))")
    reason = "the keychain file names keybag \(file), but Manifest.plist contains \(keybag)"
    underlying = nil
  }

  static func keybagMismatch(file: String, keybag: String) -> ArchivedKeychainError {
    ArchivedKeychainError(keybagOfFile: file, ofManifest: keybag)
  }

  /// What it says of an archive that its keychain has another name for its keybag.
  package static func meaning(ofName name: String, for keybag: String) -> String {
    isSame(name, as: keybag)
      ? "the two identifiers differ only in case, and no device writes such a pair"
      : "the backup was assembled from parts of two backups"
  }

  private static func isSame(_ name: String, as keybag: String) -> Bool { name.lowercased() == keybag.lowercased() }
}
