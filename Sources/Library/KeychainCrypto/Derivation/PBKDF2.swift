import Basics
import CKeyhaul
import KeychainFormats

/// PBKDF2 (RFC 8018 §5.2) with HMAC-SHA-1 or HMAC-SHA-256.
///
/// On processors with SHA extensions, Keyhaul's own loop takes about a third of OpenSSL's time; on others, the loop
/// uses OpenSSL's hash. Both report their progress at intervals, so that they can be canceled.
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
  static let progressInterval = 20_000

  /// Derives `count` bytes with HMAC-SHA-1, like `sha256`.
  static func sha1(
    password: borrowing Secret, salt: [UInt8], iterations: Int, count: Int, engine: Engine = preferredEngine,
    progress: (_ done: Int) -> Bool = { _ in true }
  ) throws(DataProtectionError) -> Secret {
    try derive(
      count, password: password, step: Step(hash: .sha1, salt: salt, iterations: iterations), engine: engine,
      progress: progress
    )
  }

  /// Derives `count` bytes with HMAC-SHA-256.
  ///
  /// - Parameter progress: Called with the number of iterations so far; returns whether to continue.
  /// - Throws: `.cancelled` if `progress` returns `false`.
  static func sha256(
    password: borrowing Secret, salt: [UInt8], iterations: Int, count: Int, engine: Engine = preferredEngine,
    progress: (_ done: Int) -> Bool = { _ in true }
  ) throws(DataProtectionError) -> Secret {
    try derive(
      count, password: password, step: Step(hash: .sha256, salt: salt, iterations: iterations), engine: engine,
      progress: progress)
  }

  /// The parameters of a derivation.
  fileprivate struct Step {
    let hash: DigestContext.Algorithm
    let salt: [UInt8]
    let iterations: Int
  }

  /// Derives `count` bytes, one block of the hash's size after the other.
  private static func derive(
    _ count: Int, password: borrowing Secret, step: Step, engine: Engine, progress: (Int) -> Bool
  ) throws(DataProtectionError) -> Secret {
    guard step.iterations > 0 else { throw DataProtectionError(.unsupported, "a derivation with no iterations") }
    let blockSize = step.hash.size
    let blockCount = count / blockSize + (count.isMultiple(of: blockSize) ? 0 : 1)
    guard let indexEnd = UInt32(exactly: blockCount) else {
      throw DataProtectionError(.unsupported, "a derivation of this size")
    }
    let blocks = try Secret(count: blockCount * blockSize) { (output) throws(DataProtectionError) in
      for index in 0..<indexEnd {
        let start = Int(index) * blockSize
        let block = UnsafeMutableRawBufferPointer(rebasing: output[start..<start + blockSize])
        // The caller counts the iterations of one block, so the progress is the average of all blocks.
        func report(_ done: Int) -> Bool { progress((Int(index) * step.iterations + done) / blockCount) }
        try password.withBytes { (bytes) throws(DataProtectionError) in
          // The RFC counts blocks from 1.
          switch engine {
          case .openSSL:
            try OpenSSLIterations.deriveBlock(index + 1, step, password: bytes, into: block, progress: report)
          case .shaExtensions:
            try AcceleratedIterations.deriveBlock(index + 1, step, password: bytes, into: block, progress: report)
          }
        }
      }
    }
    guard blocks.count != count else { return blocks }
    return blocks.withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }

  /// Runs the iterations of a block after its first one, and reports the progress at intervals.
  ///
  /// - Throws: `.cancelled` if `progress` returns `false`.
  fileprivate static func runRemainingIterations(
    of step: Step, progress: (Int) -> Bool, run: (_ count: Int) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) {
    var completedCount = 1
    repeat {
      let count = min(progressInterval, step.iterations - completedCount)
      try run(count)
      completedCount += count
      guard progress(completedCount) else { throw .stopped }
    } while completedCount < step.iterations
  }
}

/// Derives a block with the processor's SHA extensions.
private enum AcceleratedIterations {
  static func deriveBlock(
    _ index: UInt32, _ step: PBKDF2.Step, password: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
    progress: (Int) -> Bool
  ) throws(DataProtectionError) {
    // The state needs a stable address, and is overwritten in every case.
    _ = try Secret(count: MemoryLayout<keyhaul_pbkdf2>.size) { (memory) throws(DataProtectionError) in
      guard let state = memory.bindMemory(to: keyhaul_pbkdf2.self).baseAddress else { return }
      keyhaul_pbkdf2_begin(
        state, step.hash == .sha1 ? keyhaul_sha1 : keyhaul_sha256,
        password.baseAddress?.assumingMemoryBound(to: UInt8.self), password.count, step.salt, step.salt.count, index)
      try PBKDF2.runRemainingIterations(of: step, progress: progress) { (count) throws(DataProtectionError) in
        keyhaul_pbkdf2_run(state, UInt64(count))
      }
      keyhaul_pbkdf2_finish(state, output.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
  }
}

/// Derives a block with OpenSSL's hash, because OpenSSL's own PBKDF2 cannot be canceled.
private enum OpenSSLIterations {
  /// Writes the xor of all iterations' codes to `output`. The message of the first code is the salt and the block's index.
  /// The message of each later code is the previous code.
  static func deriveBlock(
    _ index: UInt32, _ step: PBKDF2.Step, password: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer,
    progress: (Int) -> Bool
  ) throws(DataProtectionError) {
    let hmac = try AuthenticationCode(step.hash, key: password)
    _ = try Secret(count: step.hash.size) { (code) throws(DataProtectionError) in
      let codeBytes = UnsafeRawBufferPointer(code)
      try hmac.write(into: code) { (message) throws(DataProtectionError) in
        try step.salt.withRawBytes { (salt) throws(DataProtectionError) in try message.update(salt) }
        try bigEndianBytes(index).withRawBytes { (index) throws(DataProtectionError) in try message.update(index) }
      }
      output.copyMemory(from: codeBytes)
      try PBKDF2.runRemainingIterations(of: step, progress: progress) { (count) throws(DataProtectionError) in
        for _ in 0..<count {
          try hmac.write(into: code) { (message) throws(DataProtectionError) in try message.update(codeBytes) }
          for offset in 0..<step.hash.size { output[offset] ^= code[offset] }
        }
      }
    }
  }
}

/// HMAC (RFC 2104) with a fixed key. The hashes of the two padded keys are computed only once; their states are copied
/// for each message.
private struct AuthenticationCode: ~Copyable {
  private static let blockSize = 64
  private static let innerPad: UInt8 = 0x36
  private static let outerPad: UInt8 = 0x5C
  private let inner: DigestContext
  private let outer: DigestContext
  /// The hash that computes the code of the current message.
  private let workingHash: DigestContext

  init(_ hash: DigestContext.Algorithm, key: UnsafeRawBufferPointer) throws(DataProtectionError) {
    let inner = try DigestContext(hash)
    let outer = try DigestContext(hash)
    // A longer key is replaced with its hash, and a shorter one is padded with zeros.
    let paddedKey = try Secret(count: Self.blockSize) { (block) throws(DataProtectionError) in
      guard key.count > Self.blockSize else { return block.copyMemory(from: key) }
      let digest = try DigestContext(hash)
      try digest.update(key)
      try digest.finish(into: UnsafeMutableRawBufferPointer(rebasing: block[..<hash.size]))
    }
    try Self.add(paddedKey, xoredWith: Self.innerPad, to: inner)
    try Self.add(paddedKey, xoredWith: Self.outerPad, to: outer)
    self.workingHash = try DigestContext(hash)
    self.inner = inner
    self.outer = outer
  }

  private static func add(
    _ key: borrowing Secret, xoredWith pad: UInt8, to hash: borrowing DigestContext
  ) throws(DataProtectionError) {
    let block = key.withBytes { key in
      Secret(count: blockSize) { block in
        for offset in 0..<blockSize { block[offset] = key[offset] ^ pad }
      }
    }
    try block.withBytes { (bytes) throws(DataProtectionError) in try hash.update(bytes) }
  }

  /// Writes the code of a message, which may be in `target` itself.
  ///
  /// - Parameter addMessage: Adds the message to a hash.
  borrowing func write(
    into target: UnsafeMutableRawBufferPointer,
    of addMessage: (borrowing DigestContext) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) {
    try workingHash.copyState(of: inner)
    try addMessage(workingHash)
    try workingHash.finish(into: target)
    try workingHash.copyState(of: outer)
    try workingHash.update(UnsafeRawBufferPointer(target))
    try workingHash.finish(into: target)
  }
}

extension DataProtectionError {
  /// The error of a derivation whose progress closure returned `false`.
  static var stopped: DataProtectionError {
    DataProtectionError(.cancelled, "it was stopped before its last iteration")
  }
}
