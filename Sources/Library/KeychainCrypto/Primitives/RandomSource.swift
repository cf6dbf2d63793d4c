internal import Basics
internal import COpenSSL
import KeychainFormats

/// Where keys, salts and identifiers come from. A parameter everywhere, so that tests and fixtures can repeat a run.
public protocol RandomSource: Sendable {
  /// Fills the whole buffer or throws `DataProtectionError.randomFailed`.
  func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError)
}

extension RandomSource {
  /// `count` bytes that are no secret: a salt, a UUID.
  public func bytes(_ count: Int) throws(DataProtectionError) -> [UInt8] {
    try [UInt8](count: count) { (buffer) throws(DataProtectionError) in try fill(buffer) }
  }
}

/// The operating system's randomness through OpenSSL's generator.
public struct SystemRandomSource: RandomSource {
  /// Creates a source; it has no state of its own.
  public init() {}

  /// Fills the buffer.
  ///
  /// - Throws: `.randomFailed`, with the buffer in no state to be used.
  public func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
    guard let base = buffer.baseAddress, buffer.count > 0 else { return }
    guard let count = Int32(exactly: buffer.count), RAND_bytes(base, count) == 1 else {
      throw DataProtectionError(.randomFailed, "OpenSSL's generator did not return \(buffer.count) bytes")
    }
  }
}

/// The same bytes for the same seed, for fixtures and tests: block n is SHA-256 of the seed and n as 8 bytes,
/// big-endian. Anyone who knows the seed knows the keys.
public final class SeededRandomSource: RandomSource {
  private struct State {
    var counter: UInt64 = 0
    /// What is left of the block before.
    var pending: ArraySlice<UInt8> = []
  }

  private let seed: [UInt8]
  private let state = Locked(State())

  /// Creates a source that gives the same bytes for the same seed.
  public init(seed: [UInt8]) { self.seed = seed }
  /// Creates a source of the seed's UTF-8 bytes.
  public convenience init(seed: String) { self.init(seed: Array(seed.utf8)) }

  /// Fills the buffer with the bytes that follow those given before.
  public func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
    try state.withLock { (state) throws(DataProtectionError) in
      var rest = buffer[...]
      while !rest.isEmpty {
        if state.pending.isEmpty {
          state.pending = try Digest.sha256(seed + bigEndianBytes(state.counter))[...]
          state.counter &+= 1
        }
        let given = state.pending.prefix(rest.count)
        UnsafeMutableRawBufferPointer(rebasing: rest).copyBytes(from: given)
        state.pending.removeFirst(given.count)
        rest.removeFirst(given.count)
      }
    }
  }
}
