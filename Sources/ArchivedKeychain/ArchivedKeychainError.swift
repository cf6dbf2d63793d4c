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
  public let category: ErrorCategory
  public let summary: String
  public let reason: String
  public let advice: String
  /// The error of a part below that this one carries on.
  public let underlying: (any ExplainedError)?

  /// Carries on what a part below says.
  public init(_ error: some ExplainedError) {
    code = .underlying
    category = error.category
    summary = error.summary
    reason = error.reason
    advice = error.advice
    underlying = error
  }

  private init(_ code: Code, _ category: ErrorCategory, _ summary: String, reason: String, advice: String) {
    self.code = code
    self.category = category
    self.summary = summary
    self.reason = reason
    self.advice = advice
    underlying = nil
  }

  static func keybagMismatch(file: String, keybag: String) -> ArchivedKeychainError {
    ArchivedKeychainError(
      .keybagMismatch, .damaged,
      isSame(file, as: keybag) ? "its keychain spells its keybag otherwise" : "its keychain belongs to another keybag",
      reason: "the keychain file names keybag \(file), the manifest holds \(keybag)",
      advice: "another copy; \(meaning(ofName: file, for: keybag))")
  }

  /// What it says of an archive that its keychain has another name for its keybag.
  static func meaning(ofName name: String, for keybag: String) -> String {
    isSame(name, as: keybag)
      ? "the two differ in the case of their letters alone, as no device writes them"
      : "the backup was put together from parts of two"
  }

  private static func isSame(_ name: String, as keybag: String) -> Bool { name.lowercased() == keybag.lowercased() }
}
