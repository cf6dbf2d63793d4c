internal import Basics
internal import COpenSSL
import KeychainFormats

/// A source of keys, salts and identifiers. It is always a parameter, so that tests and fixtures are reproducible.
public protocol RandomSource: Sendable {
  /// Fills the entire buffer, or throws `DataProtectionError.randomFailed`.
  func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError)
}

extension RandomSource {
  /// Returns `count` bytes that are not secret, such as a salt or UUID.
  package func bytes(_ count: Int) throws(DataProtectionError) -> [UInt8] {
    try [UInt8](count: count) { (buffer) throws(DataProtectionError) in try fill(buffer) }
  }
}

/// The operating system's random bytes, from OpenSSL's generator.
public struct SystemRandomSource: RandomSource {
  /// Creates a source, which has no state.
  public init() {}

  /// Fills the buffer.
  ///
  /// - Throws: `.randomFailed`; the buffer must then not be used.
  public func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
    guard let base = buffer.baseAddress, buffer.count > 0 else { return }
    guard let count = Int32(exactly: buffer.count), RAND_bytes(base, count) == 1 else {
      throw DataProtectionError(.randomFailed, "OpenSSL's generator did not return \(buffer.count) bytes")
    }
  }
}

/// A source that gives the same bytes for the same seed, for fixtures and tests. Anyone who knows the seed knows the
/// keys.
///
/// Block n is the SHA-256 of the seed and of n, written as 8 big-endian bytes.
package final class SeededRandomSource: RandomSource {
  private struct State {
    var counter: UInt64 = 0
    /// The unused bytes of the last block.
    var pending: ArraySlice<UInt8> = []
  }

  private let seed: [UInt8]
  private let state = Locked(State())

  /// Creates a source from a seed.
  package init(seed: [UInt8]) { self.seed = seed }
  /// Creates a source from the seed's UTF-8 bytes.
  package convenience init(seed: String) { self.init(seed: Array(seed.utf8)) }

  /// Fills the buffer with the next bytes of the sequence.
  public func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
    try state.withLock { (state) throws(DataProtectionError) in
      var unfilled = buffer[...]
      while !unfilled.isEmpty {
        if state.pending.isEmpty {
          state.pending = try Digest.sha256(seed + bigEndianBytes(state.counter))[...]
          state.counter &+= 1
        }
        let chunk = state.pending.prefix(unfilled.count)
        UnsafeMutableRawBufferPointer(rebasing: unfilled).copyBytes(from: chunk)
        state.pending.removeFirst(chunk.count)
        unfilled.removeFirst(chunk.count)
      }
    }
  }
}
