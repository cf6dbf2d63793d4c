/// Derives the key that wraps a backup's class keys from the password.
///
/// Up to iOS 10.1, there is one step: PBKDF2-HMAC-SHA1 of the password. Since iOS 10.2, there are two:
/// PBKDF2-HMAC-SHA256 of the password gives 32 bytes, which are the password of the SHA-1 step.
public enum PasswordDerivation {
  /// The parameters of the derivation, from the keybag.
  package struct Parameters: Sendable, Hashable {
    /// The salt of the SHA-1 step (`SALT`).
    package var salt: [UInt8]
    /// The iterations of the SHA-1 step (`ITER`); 10,000 in backups since iOS 10.2, 1 in some earlier ones.
    package var iterations: UInt32
    /// The SHA-256 step before it (`DPSL` and `DPIC`), or `nil`. Only these fields, not a version, show that there are
    /// two steps.
    package var first: FirstRound?

    /// The slow SHA-256 step since iOS 10.2.
    package struct FirstRound: Sendable, Hashable {
      /// The salt (`DPSL`), 20 bytes in every real keybag.
      package var salt: [UInt8]
      /// The iterations (`DPIC`), 10,000,000 in every real keybag.
      package var iterations: UInt32

      /// Creates the parameters of the SHA-256 step.
      package init(salt: [UInt8], iterations: UInt32) {
        self.salt = salt
        self.iterations = iterations
      }
    }

    /// Creates the parameters of a derivation; without `first`, there is only the SHA-1 step.
    package init(salt: [UInt8], iterations: UInt32, first: FirstRound? = nil) {
      self.salt = salt
      self.iterations = iterations
      self.first = first
    }

    /// The iterations of all steps together.
    package var totalRounds: UInt64 { UInt64(iterations) + UInt64(first?.iterations ?? 0) }

    /// Throws if the derivation requires too many iterations, or none; costs no time.
    ///
    /// - Throws: `.roundsOverLimit`; `.damagedKeybag` for a step without iterations.
    package func check(acceptingAtMost limit: Int = IterationLimit.standard) throws(DataProtectionError) {
      try IterationLimit.check([iterations] + (first.map { [$0.iterations] } ?? []), acceptingAtMost: limit)
    }
  }

  /// A closure that is called every few milliseconds with the iterations so far and in total, and returns whether to
  /// continue.
  public typealias Progress = (_ done: Int, _ total: Int) -> Bool

  /// The size of a passcode key, in bytes.
  static let keySize = 32

  /// Derives the 32-byte passcode key.
  ///
  /// - Parameters:
  ///   - password: The password in UTF-8 as it was typed, without a trailing newline. Empty for a backup without one.
  ///   - parameters: The parameters from the keybag.
  ///   - limit: The most iterations to accept, of all steps together.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.roundsOverLimit` or `.damagedKeybag` (0 iterations) before any work is done; `.cancelled`.
  package static func passcodeKey(
    password: borrowing Secret, parameters: Parameters, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    try parameters.check(acceptingAtMost: limit)

    let total = Int(clamping: parameters.totalRounds)
    let lastRounds = Int(parameters.iterations)
    guard let first = parameters.first else {
      return try PBKDF2.sha1(password: password, salt: parameters.salt, rounds: lastRounds, count: keySize) {
        progress($0, total)
      }
    }
    let firstRounds = Int(first.iterations)
    let inner = try PBKDF2.sha256(password: password, salt: first.salt, rounds: firstRounds, count: keySize) {
      progress($0, total)
    }
    return try PBKDF2.sha1(password: inner, salt: parameters.salt, rounds: lastRounds, count: keySize) {
      progress(firstRounds + $0, total)
    }
  }
}
