internal import CKeyDerivation
internal import COpenSSL

/// PBKDF2 (RFC 8018 §5.2) with HMAC-SHA-1 or HMAC-SHA-256.
///
/// SHA-256, which does millions of rounds, runs in a loop of our own where the processor has SHA extensions, in about
/// a third of OpenSSL's time; everything else goes through OpenSSL.
enum PBKDF2 {
  enum Engine {
    case openSSL
    /// Must only be asked for where `isAccelerated` says that it exists.
    case shaExtensions
  }

  static let isAccelerated = keyhaul_pbkdf2_sha256_is_available()
  static var preferredEngine: Engine { isAccelerated ? .shaExtensions : .openSSL }
  /// Rounds between two calls of the progress closure: some 20 ms.
  static let portion = 250_000

  /// Derives `count` bytes with OpenSSL. It cannot be stopped half-way.
  static func sha1(
    password: borrowing Secret, salt: [UInt8], rounds: Int, count: Int
  ) throws(DataProtectionError) -> Secret {
    try throughOpenSSL(EVP_sha1(), password, salt, rounds, count)
  }

  /// Derives `count` bytes. `progress` is told the rounds done so far and answers whether to go on; OpenSSL, which
  /// cannot be stopped half-way, has it called at the end only.
  static func sha256(
    password: borrowing Secret, salt: [UInt8], rounds: Int, count: Int, engine: Engine = preferredEngine,
    progress: (_ done: Int) -> Bool = { _ in true }
  ) throws(DataProtectionError) -> Secret {
    guard rounds > 0 else { throw DataProtectionError(.unsupported, "a derivation of no rounds") }
    switch engine {
    case .openSSL:
      let key = try throughOpenSSL(EVP_sha256(), password, salt, rounds, count)
      guard progress(rounds) else { throw .stopped }
      return key
    case .shaExtensions:
      return try accelerated(password, salt, rounds, count, progress)
    }
  }

  private static func throughOpenSSL(
    _ digest: OpaquePointer?, _ password: borrowing Secret, _ salt: [UInt8], _ rounds: Int, _ count: Int
  ) throws(DataProtectionError) -> Secret {
    guard let passwordCount = Int32(exactly: password.count), let saltCount = Int32(exactly: salt.count),
      let rounds = Int32(exactly: rounds), let keyCount = Int32(exactly: count)
    else { throw DataProtectionError(.unsupported, "a derivation of this size") }
    return try password.withBytes { (bytes) throws(DataProtectionError) in
      try Secret(count: count) { (output) throws(DataProtectionError) in
        let status = PKCS5_PBKDF2_HMAC(
          bytes.baseAddress?.assumingMemoryBound(to: CChar.self), passwordCount, salt, saltCount, rounds, digest,
          keyCount, output.baseAddress?.assumingMemoryBound(to: UInt8.self))
        guard status == 1 else { throw .crypto("PKCS5_PBKDF2_HMAC") }
      }
    }
  }

  /// The rounds of one block after the other, each in portions.
  private static func accelerated(
    _ password: borrowing Secret, _ salt: [UInt8], _ rounds: Int, _ count: Int, _ progress: (Int) -> Bool
  ) throws(DataProtectionError) -> Secret {
    let blockSize = 32
    let blockCount = count / blockSize + (count.isMultiple(of: blockSize) ? 0 : 1)
    guard let lastIndex = UInt32(exactly: blockCount) else {
      throw DataProtectionError(.unsupported, "a derivation of this size")
    }
    let blocks = try Secret(count: blockCount * blockSize) { (output) throws(DataProtectionError) in
      for index in 0..<lastIndex {
        let block = UnsafeMutableRawBufferPointer(
          rebasing: output[Int(index) * blockSize..<(Int(index) + 1) * blockSize])
        try password.withBytes { (bytes) throws(DataProtectionError) in
          try deriveBlock(index + 1, bytes, salt, rounds, into: block) { done in
            progress(((Int(index) * rounds) + done) / blockCount)
          }
        }
      }
    }
    guard blocks.count != count else { return blocks }
    return blocks.withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }

  private static func deriveBlock(
    _ index: UInt32, _ password: UnsafeRawBufferPointer, _ salt: [UInt8], _ rounds: Int,
    into output: UnsafeMutableRawBufferPointer, progress: (Int) -> Bool
  ) throws(DataProtectionError) {
    var state = keyhaul_pbkdf2_sha256()
    keyhaul_pbkdf2_sha256_begin(
      &state, password.baseAddress?.assumingMemoryBound(to: UInt8.self), password.count, salt, salt.count, index)
    var done = 1
    while done < rounds {
      let next = min(portion, rounds - done)
      keyhaul_pbkdf2_sha256_run(&state, UInt64(next))
      done += next
      guard progress(done) else {
        keyhaul_pbkdf2_sha256_finish(&state, nil)
        throw .stopped
      }
    }
    keyhaul_pbkdf2_sha256_finish(&state, output.baseAddress?.assumingMemoryBound(to: UInt8.self))
  }
}

extension DataProtectionError {
  fileprivate static var stopped: DataProtectionError {
    DataProtectionError(.cancelled, "it was told to stop before its last round")
  }
}
