import Basics
import CKeyhaul
import KeychainFormats

/// PBKDF2 (RFC 8018 §5.2) with HMAC-SHA-1 or HMAC-SHA-256.
///
/// On processors with SHA extensions, Keyhaul's own loop takes about a third of OpenSSL's time; on others, the loop
/// uses OpenSSL's hash. Both run in portions, so that they can be canceled.
enum PBKDF2 {
  enum Engine {
    case openSSL
    /// Requires that `isAccelerated` is `true`.
    case shaExtensions
  }

  static let isAccelerated = keyhaul_pbkdf2_is_available()
  static var preferredEngine: Engine { isAccelerated ? .shaExtensions : .openSSL }
  /// The iterations between two calls of the progress closure. They take one or two milliseconds, or about 20 on a
  /// machine that needs a microsecond for each.
  static let portion = 20_000

  /// Derives `count` bytes with HMAC-SHA-1, like `sha256`.
  static func sha1(
    password: borrowing Secret, salt: [UInt8], rounds: Int, count: Int, engine: Engine = preferredEngine,
    progress: (_ done: Int) -> Bool = { _ in true }
  ) throws(DataProtectionError) -> Secret {
    try derive(.sha1, password, salt, rounds, count, engine, progress)
  }

  /// Derives `count` bytes with HMAC-SHA-256.
  ///
  /// - Parameter progress: Called with the number of iterations so far; returns whether to continue.
  /// - Throws: `.cancelled` if `progress` returns `false`.
  static func sha256(
    password: borrowing Secret, salt: [UInt8], rounds: Int, count: Int, engine: Engine = preferredEngine,
    progress: (_ done: Int) -> Bool = { _ in true }
  ) throws(DataProtectionError) -> Secret {
    try derive(.sha256, password, salt, rounds, count, engine, progress)
  }

  /// Derives one block after the other.
  private static func derive(
    _ hash: DigestContext.Algorithm, _ password: borrowing Secret, _ salt: [UInt8], _ rounds: Int, _ count: Int,
    _ engine: Engine, _ progress: (Int) -> Bool
  ) throws(DataProtectionError) -> Secret {
    guard rounds > 0 else { throw DataProtectionError(.unsupported, "a derivation with no iterations") }
    let blockCount = count / hash.size + (count.isMultiple(of: hash.size) ? 0 : 1)
    guard let lastIndex = UInt32(exactly: blockCount) else {
      throw DataProtectionError(.unsupported, "a derivation of this size")
    }
    let blocks = try Secret(count: blockCount * hash.size) { (output) throws(DataProtectionError) in
      for index in 0..<lastIndex {
        let block = UnsafeMutableRawBufferPointer(
          rebasing: output[Int(index) * hash.size..<(Int(index) + 1) * hash.size])
        func report(_ done: Int) -> Bool { progress((Int(index) * rounds + done) / blockCount) }
        try password.withBytes { (bytes) throws(DataProtectionError) in
          switch engine {
          case .openSSL: try OpenSSLRounds.run(hash, index + 1, bytes, salt, rounds, into: block, report)
          case .shaExtensions: try AcceleratedRounds.run(hash, index + 1, bytes, salt, rounds, into: block, report)
          }
        }
      }
    }
    guard blocks.count != count else { return blocks }
    return blocks.withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }

  /// Runs the iterations after the first in portions, and throws `.cancelled` if `progress` returns `false`.
  static func inPortions(
    _ rounds: Int, _ progress: (Int) -> Bool, _ run: (_ count: Int) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) {
    var done = 1
    repeat {
      let next = min(portion, rounds - done)
      try run(next)
      done += next
      guard progress(done) else { throw .stopped }
    } while done < rounds
  }
}

/// Derives a block with the processor's SHA extensions.
private enum AcceleratedRounds {
  static func run(
    _ hash: DigestContext.Algorithm, _ index: UInt32, _ password: UnsafeRawBufferPointer, _ salt: [UInt8],
    _ rounds: Int, into output: UnsafeMutableRawBufferPointer, _ progress: (Int) -> Bool
  ) throws(DataProtectionError) {
    // The state needs a stable address, and is overwritten in every case.
    _ = try Secret(count: MemoryLayout<keyhaul_pbkdf2>.size) { (memory) throws(DataProtectionError) in
      guard let state = memory.bindMemory(to: keyhaul_pbkdf2.self).baseAddress else { return }
      keyhaul_pbkdf2_begin(
        state, hash == .sha1 ? keyhaul_sha1 : keyhaul_sha256,
        password.baseAddress?.assumingMemoryBound(to: UInt8.self), password.count, salt, salt.count, index)
      try PBKDF2.inPortions(rounds, progress) { (count) throws(DataProtectionError) in
        keyhaul_pbkdf2_run(state, UInt64(count))
      }
      keyhaul_pbkdf2_finish(state, output.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
  }
}

/// Derives a block with OpenSSL's hash, because OpenSSL's own PBKDF2 cannot be canceled.
private enum OpenSSLRounds {
  static func run(
    _ hash: DigestContext.Algorithm, _ index: UInt32, _ password: UnsafeRawBufferPointer, _ salt: [UInt8],
    _ rounds: Int, into output: UnsafeMutableRawBufferPointer, _ progress: (Int) -> Bool
  ) throws(DataProtectionError) {
    let code = try AuthenticationCode(hash, key: password)
    _ = try Secret(count: hash.size) { (last) throws(DataProtectionError) in
      let bytes = UnsafeRawBufferPointer(last)
      try code.write(into: last) { (message) throws(DataProtectionError) in
        try salt.withRawBytes { (salt) throws(DataProtectionError) in try message.update(salt) }
        try bigEndianBytes(index).withRawBytes { (index) throws(DataProtectionError) in try message.update(index) }
      }
      output.copyMemory(from: bytes)
      try PBKDF2.inPortions(rounds, progress) { (count) throws(DataProtectionError) in
        for _ in 0..<count {
          try code.write(into: last) { (message) throws(DataProtectionError) in try message.update(bytes) }
          for offset in 0..<hash.size { output[offset] ^= last[offset] }
        }
      }
    }
  }
}

/// HMAC (RFC 2104) with a fixed key: the hash states after the padded key, and a hash that starts with them.
private struct AuthenticationCode: ~Copyable {
  private static let blockSize = 64
  private let inner: DigestContext
  private let outer: DigestContext
  private let message: DigestContext

  init(_ hash: DigestContext.Algorithm, key: UnsafeRawBufferPointer) throws(DataProtectionError) {
    let inner = try DigestContext(hash)
    let outer = try DigestContext(hash)
    let padded = try Secret(count: Self.blockSize) { (block) throws(DataProtectionError) in
      guard key.count > Self.blockSize else { return block.copyMemory(from: key) }
      let digest = try DigestContext(hash)
      try digest.update(key)
      try digest.finish(into: UnsafeMutableRawBufferPointer(rebasing: block[..<hash.size]))
    }
    try Self.begin(inner, padded, 0x36)
    try Self.begin(outer, padded, 0x5C)
    self.message = try DigestContext(hash)
    self.inner = inner
    self.outer = outer
  }

  private static func begin(
    _ hash: borrowing DigestContext, _ key: borrowing Secret, _ pad: UInt8
  ) throws(DataProtectionError) {
    let block = key.withBytes { key in
      Secret(count: blockSize) { block in
        for offset in 0..<blockSize { block[offset] = key[offset] ^ pad }
      }
    }
    try block.withBytes { (bytes) throws(DataProtectionError) in try hash.update(bytes) }
  }

  /// Writes the code of a message. The message may be in `target` itself.
  borrowing func write(
    into target: UnsafeMutableRawBufferPointer,
    of body: (borrowing DigestContext) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) {
    try message.copyState(of: inner)
    try body(message)
    try message.finish(into: target)
    try message.copyState(of: outer)
    try message.update(UnsafeRawBufferPointer(target))
    try message.finish(into: target)
  }
}

extension DataProtectionError {
  /// The error of a derivation whose progress closure returned `false`.
  static var stopped: DataProtectionError {
    DataProtectionError(.cancelled, "it was stopped before its last iteration")
  }
}

extension PasswordDerivation.Parameters {
  /// The iterations of a sample, which takes a few milliseconds.
  static let sampleRounds = 20_000
  private static let sampleCount = 3

  /// Returns the expected duration of the complete derivation on this machine, measured with short samples.
  ///
  /// - Parameter clock: The clock for the samples. The shortest sample counts, because
  ///   other work can only slow a sample down.
  /// - Throws: `.cryptoFailed` if the cryptographic library fails.
  package func estimatedDuration(
    by clock: some Clock<Duration> = ContinuousClock()
  ) throws(DataProtectionError) -> Duration {
    var total = Duration.zero
    let password = Secret(utf8: "a sample")
    if let sha256Step {
      total += try Self.scaled(to: sha256Step.iterations, by: clock) { (rounds) throws(DataProtectionError) in
        _ = try PBKDF2.sha256(
          password: password, salt: sha256Step.salt, rounds: rounds, count: PasswordDerivation.keySize)
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
