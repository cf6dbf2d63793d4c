import Basics

/// Computes the SHA-1 or SHA-256 of messages that arrive in chunks.
///
/// Not to be used from two threads at once.
package final class DigestStream {
  /// The digests that Apple's formats use.
  package enum Algorithm: Sendable {
    /// The digests have 20 bytes (SHA-1) or 32 bytes (SHA-256).
    case sha1, sha256
  }

  private let context: DigestContext
  private let result: UnsafeMutableRawBufferPointer

  /// Creates a stream at the start of a message.
  ///
  /// - Throws: `.cryptoFailed`.
  package init(_ algorithm: Algorithm) throws(DataProtectionError) {
    context = try DigestContext(algorithm)
    result = .allocate(byteCount: algorithm.size, alignment: 16)
  }

  deinit { result.deallocate() }

  /// Adds the next bytes of the message.
  ///
  /// - Throws: `.cryptoFailed`.
  package func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) { try context.update(bytes) }

  /// Adds the next bytes of the message.
  package func update(_ bytes: [UInt8]) throws(DataProtectionError) {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try context.update(buffer) }
  }

  /// Calls a closure with the digest of the message, without an allocation, and starts the next message.
  package func finish<Value>(_ body: (UnsafeRawBufferPointer) -> Value) throws(DataProtectionError) -> Value {
    try context.finish(into: result)
    try context.restart()
    return body(UnsafeRawBufferPointer(result))
  }

  /// Returns the digest of the message, 20 or 32 bytes, and starts the next message.
  package func finish() throws(DataProtectionError) -> [UInt8] { try finish { Array($0) } }
}
