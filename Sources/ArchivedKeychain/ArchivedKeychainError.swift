public import KeychainFormats

/// Why an archive's keychain could not be opened as a whole. What happens to a single item is `ArchivedItem.Failure`
/// instead.
public struct ArchivedKeychainError: ExplainedError {
  public enum Code: String, Sendable {
    /// A part below failed; its own words are carried on.
    case underlying
    /// The keychain file was sealed for another keybag than the archive's.
    case keybagMismatch
  }

  public let code: Code
  public let explanation: ErrorExplanation
  public let reason: String
  /// The error of a part below that this one carries on.
  public let underlying: (any ExplainedError)?

  /// Carries on what a part below says.
  public init(_ error: some ExplainedError) {
    code = .underlying
    explanation = error.explanation
    reason = error.reason
    underlying = error
  }

  private init(keybagOfFile file: String, ofManifest keybag: String) {
    code = .keybagMismatch
    explanation = ErrorExplanation(
      .damaged,
      Self.isSame(file, as: keybag)
        ? "its keychain spells its keybag otherwise" : "its keychain belongs to another keybag",
      advice: "another copy; \(Self.meaning(ofName: file, for: keybag))")
    reason = "the keychain file names keybag \(file), the manifest holds \(keybag)"
    underlying = nil
  }

  static func keybagMismatch(file: String, keybag: String) -> ArchivedKeychainError {
    ArchivedKeychainError(keybagOfFile: file, ofManifest: keybag)
  }

  /// What it says of an archive that its keychain has another name for its keybag.
  static func meaning(ofName name: String, for keybag: String) -> String {
    isSame(name, as: keybag)
      ? "the two differ in the case of their letters alone, as no device writes them"
      : "the backup was put together from parts of two"
  }

  private static func isSame(_ name: String, as keybag: String) -> Bool { name.lowercased() == keybag.lowercased() }
}
