extension PasswordDerivation.Parameters {
  /// The iterations of a sample, which takes a few milliseconds.
  static let sampleRounds = 20_000
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
        (rounds) throws(DataProtectionError) in
        _ = try PBKDF2.sha256(
          password: password, salt: sha256Step.salt, rounds: rounds, count: PasswordDerivation.keySize)
      }
    }
    return try total
      + Self.estimatedDuration(of: iterations, by: clock) { (rounds) throws(DataProtectionError) in
        _ = try PBKDF2.sha1(password: password, salt: salt, rounds: rounds, count: PasswordDerivation.keySize)
      }
  }

  /// Extrapolates the duration of a number of iterations from the shortest of several samples, because other work can
  /// only slow a sample down.
  private static func estimatedDuration(
    of rounds: UInt32, by clock: some Clock<Duration>, run: (Int) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) -> Duration {
    guard rounds > 0 else { return .zero }
    let roundsPerSample = min(Int(rounds), sampleRounds)
    var shortest: Duration?
    for _ in 0..<sampleCount {
      let start = clock.now
      try run(roundsPerSample)
      let duration = start.duration(to: clock.now)
      shortest = min(shortest ?? duration, duration)
    }
    return (shortest ?? .zero) * (Double(rounds) / Double(roundsPerSample))
  }
}
