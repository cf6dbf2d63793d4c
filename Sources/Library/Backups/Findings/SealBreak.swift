/// One thing by which a backup is not what was sealed.
public struct SealBreak: Sendable, Hashable {
  /// The file it concerns, by its path in the backup: the seal itself where nothing tells which other one.
  public let file: String
  /// The fact, as a clause without the file.
  public let reason: String
  /// Whether it is a file that was sealed and is not there.
  public let isAbsence: Bool

  package init(_ file: String, _ reason: Reason) {
    self.file = file
    self.reason = reason.text
    isAbsence = if case .missing = reason { true } else { false }
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
      case .changed: "it has changed since it was sealed"
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
