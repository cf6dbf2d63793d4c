/// From a backup's password to the key that its class keys are wrapped with.
///
/// One round until iOS 10.1: PBKDF2-HMAC-SHA1 of the password. Two rounds since iOS 10.2: PBKDF2-HMAC-SHA256 of the
/// password first, and its 32 bytes are the password of the SHA-1 round.
public enum PasswordDerivation {
  /// What the keybag says about its derivation.
  public struct Parameters: Sendable, Hashable {
    /// `SALT` and `ITER`, of the last round.
    public var salt: [UInt8]
    /// `ITER`, the PBKDF2-HMAC-SHA1 rounds; 10,000 in backups since iOS 10.2, 1 in some before.
    public var iterations: UInt32
    /// `DPSL` and `DPIC`, of the first of two rounds. Their presence decides that there are two, no version does.
    public var first: FirstRound?

    /// The slow round since iOS 10.2: PBKDF2-HMAC-SHA256.
    public struct FirstRound: Sendable, Hashable {
      /// `DPSL`, twenty bytes in every real bag.
      public var salt: [UInt8]
      /// `DPIC`, ten million in every real bag.
      public var iterations: UInt32

      /// Creates the first of two rounds.
      public init(salt: [UInt8], iterations: UInt32) {
        self.salt = salt
        self.iterations = iterations
      }
    }

    /// Creates the parameters of a keybag; without a `first` there is one round alone.
    public init(salt: [UInt8], iterations: UInt32, first: FirstRound? = nil) {
      self.salt = salt
      self.iterations = iterations
      self.first = first
    }

    /// All rounds together.
    public var totalRounds: UInt64 { UInt64(iterations) + UInt64(first?.iterations ?? 0) }

    /// Refuses more work than is accepted; costs nothing.
    ///
    /// - Throws: `.roundsOverLimit`; `.damagedKeybag` for a round of no iterations.
    public func check(acceptingAtMost limit: Int = RoundLimit.standard) throws(DataProtectionError) {
      try RoundLimit.check([iterations] + (first.map { [$0.iterations] } ?? []), acceptingAtMost: limit)
    }
  }

  /// Is told how many rounds of how many are done, every few milliseconds, and answers whether to go on.
  public typealias Progress = (_ done: Int, _ total: Int) -> Bool

  /// The size of a passcode key, in bytes.
  static let keySize = 32

  /// Derives the 32-byte passcode key.
  ///
  /// - Parameters:
  ///   - password: UTF-8 bytes as they were typed, without a trailing newline. Empty for a backup without one.
  ///   - parameters: Salts and rounds, as the keybag has them.
  ///   - limit: The most rounds to accept, all together.
  ///   - progress: Where it answers `false` the derivation ends with `.cancelled`.
  /// - Throws: `.roundsOverLimit` and `.damagedKeybag` (0 rounds) before any work is done.
  public static func passcodeKey(
    password: borrowing Secret, parameters: Parameters, acceptingAtMost limit: Int = RoundLimit.standard,
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
