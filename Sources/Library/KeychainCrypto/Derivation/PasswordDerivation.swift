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
    /// The SHA-256 step before the SHA-1 step (`DPSL` and `DPIC`), or `nil`. Only these fields, not a version, show that
    /// there are two steps.
    package var sha256Step: SHA256Step?

    /// The slow SHA-256 step since iOS 10.2.
    package struct SHA256Step: Sendable, Hashable {
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

    /// Creates the parameters of a derivation; without `sha256Step`, there is only the SHA-1 step.
    package init(salt: [UInt8], iterations: UInt32, sha256Step: SHA256Step? = nil) {
      self.salt = salt
      self.iterations = iterations
      self.sha256Step = sha256Step
    }

    /// The iterations of all steps together.
    package var totalIterations: UInt64 { UInt64(iterations) + UInt64(sha256Step?.iterations ?? 0) }

    /// Checks that each step has iterations, and that all steps together do not exceed the limit. Does not derive anything.
    ///
    /// - Throws: `.damagedKeybag` for a step without iterations; `.roundsOverLimit` above the limit.
    package func check(acceptingAtMost limit: Int = IterationLimit.standard) throws(DataProtectionError) {
      try IterationLimit.check([iterations] + (sha256Step.map { [$0.iterations] } ?? []), acceptingAtMost: limit)
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
  ///   - limit: The maximum number of iterations to accept, of all steps together.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.roundsOverLimit` or `.damagedKeybag` (0 iterations) before any work is done; `.cancelled`.
  package static func passcodeKey(
    password: borrowing Secret, parameters: Parameters, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    try parameters.check(acceptingAtMost: limit)

    let total = Int(clamping: parameters.totalIterations)
    let sha1Iterations = Int(parameters.iterations)
    guard let sha256Step = parameters.sha256Step else {
      return try PBKDF2.sha1(password: password, salt: parameters.salt, iterations: sha1Iterations, count: keySize) {
        progress($0, total)
      }
    }
    let sha256Iterations = Int(sha256Step.iterations)
    let intermediate = try PBKDF2.sha256(
      password: password, salt: sha256Step.salt, iterations: sha256Iterations, count: keySize
    ) {
      progress($0, total)
    }
    return try PBKDF2.sha1(password: intermediate, salt: parameters.salt, iterations: sha1Iterations, count: keySize) {
      progress(sha256Iterations + $0, total)
    }
  }
}

extension PasswordDerivation.Parameters {
  /// The maximum number of iterations in a sample, which takes a few milliseconds.
  static let iterationsPerSample = 20_000
  private static let sampleCount = 3

  /// Returns the expected duration of the complete derivation on this machine, measured with short samples.
  ///
  /// - Parameter clock: The clock for the samples.
  /// - Throws: `.cryptoFailed` if the cryptographic library fails.
  package func estimatedDuration(
    by clock: some Clock<Duration> = ContinuousClock()
  ) throws(DataProtectionError) -> Duration {
    var total = Duration.zero
    let password = Secret(utf8: "a sample")
    if let sha256Step {
      total += try Self.estimatedDuration(of: sha256Step.iterations, by: clock) {
        (sampleSize) throws(DataProtectionError) in
        _ = try PBKDF2.sha256(
          password: password, salt: sha256Step.salt, iterations: sampleSize, count: PasswordDerivation.keySize)
      }
    }
    return try total
      + Self.estimatedDuration(of: iterations, by: clock) { (sampleSize) throws(DataProtectionError) in
        _ = try PBKDF2.sha1(password: password, salt: salt, iterations: sampleSize, count: PasswordDerivation.keySize)
      }
  }

  /// Extrapolates the duration of a number of iterations from the shortest of several samples, because other work can
  /// only slow a sample down.
  private static func estimatedDuration(
    of iterations: UInt32, by clock: some Clock<Duration>, run: (_ sampleSize: Int) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) -> Duration {
    guard iterations > 0 else { return .zero }
    let sampleSize = min(Int(iterations), iterationsPerSample)
    var shortest: Duration?
    for _ in 0..<sampleCount {
      let start = clock.now
      try run(sampleSize)
      let duration = start.duration(to: clock.now)
      shortest = min(shortest ?? duration, duration)
    }
    return (shortest ?? .zero) * (Double(iterations) / Double(sampleSize))
  }
}
