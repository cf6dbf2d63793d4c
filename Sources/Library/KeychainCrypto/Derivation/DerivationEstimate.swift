extension PasswordDerivation.Parameters {
  /// Rounds of a sample: a few milliseconds of work.
  static let sampleRounds = 20_000
  private static let sampleCount = 3

  /// How long this machine is likely to need for the whole derivation, from a short run of the same loops.
  ///
  /// - Parameter clock: What measures the samples; the shortest of them counts, because nothing makes a run faster than
  ///   the machine is.
  /// - Throws: `.crypto` where the cryptographic library fails.
  public func estimatedDuration(
    by clock: some Clock<Duration> = ContinuousClock()
  ) throws(DataProtectionError) -> Duration {
    var total = Duration.zero
    let password = Secret(utf8: "a sample")
    if let first {
      total += try Self.scaled(to: first.iterations, by: clock) { (rounds) throws(DataProtectionError) in
        _ = try PBKDF2.sha256(password: password, salt: first.salt, rounds: rounds, count: PasswordDerivation.keySize)
      }
    }
    return try total
      + Self.scaled(to: iterations, by: clock) { (rounds) throws(DataProtectionError) in
        _ = try PBKDF2.sha1(password: password, salt: salt, rounds: rounds, count: PasswordDerivation.keySize)
      }
  }

  private static func scaled(
    to rounds: UInt32, by clock: some Clock<Duration>, _ run: (Int) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) -> Duration {
    guard rounds > 0 else { return .zero }
    let sample = min(Int(rounds), sampleRounds)
    var shortest: Duration?
    for _ in 0..<sampleCount {
      let start = clock.now
      try run(sample)
      let duration = start.duration(to: clock.now)
      shortest = min(shortest ?? duration, duration)
    }
    return (shortest ?? .zero) * (Double(rounds) / Double(sample))
  }
}
