import KeyhaulKit

/// A password that was read once and opens many backups, with the keys that were derived from it.
final class SharedPassword: Sendable {
  /// What named it, for messages: "line 3 of the list".
  let origin: String
  let keys = DerivedKeyCache()
  let held: SecretBox
  /// The password's name in this run's answers in a `--resume` file. It is random and reveals nothing about the
  /// password.
  let mark = String(UInt64.random(in: .min ... .max), radix: 16)
  /// The password's names in earlier runs.
  private let earlierMarks = Locked<Set<String>>([])

  init(_ secret: consuming Secret, from origin: String) {
    self.origin = origin
    held = SecretBox(secret)
  }

  /// Whether this is known to be the password with the given mark.
  func isKnown(as mark: String) -> Bool { self.mark == mark || earlierMarks.withLock { $0.contains(mark) } }

  /// Records that this password opened a backup that the password with the given mark had opened.
  func know(as mark: String) { _ = earlierMarks.withLock { $0.insert(mark) } }

  /// A copy of it.
  func secret() -> Secret { held.secret.copy() }
}

/// The passwords that a call about many backups has for each of them.
protocol PasswordOffers: Sendable {
  /// Those for one backup, in the order in which they are tried.
  ///
  /// - Parameters:
  ///   - path: As the user named the backup, or as it was found.
  ///   - identifier: Of the device that made it, as it claims.
  func passwords(for path: String, of identifier: String?) -> [SharedPassword]
  /// Whether they are from a list: then nobody said that each backup has one.
  var areListed: Bool { get }
}

extension Session {
  /// The passwords that are available for the backup that this session is about, in the order in which they are tried.
  var offeredPasswords: [SharedPassword] {
    offers?.passwords(for: subjectPath, of: subject?.identifier) ?? []
  }

  /// Whether a list has a password for it: then it is opened, whether or not it has to be.
  var offersListed: Bool { offers?.areListed == true && !offeredPasswords.isEmpty }
}
