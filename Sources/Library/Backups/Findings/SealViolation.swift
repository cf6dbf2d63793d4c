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
    /// The authentication code does not match the list.
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
