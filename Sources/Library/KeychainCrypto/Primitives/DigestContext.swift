import Basics
import COpenSSL
import KeychainFormats

/// An OpenSSL hash computation.
struct DigestContext: ~Copyable {
  enum Algorithm {
    case sha1
    case sha256

    var handle: OpaquePointer? {
      switch self {
      case .sha1: Self.sha1Handle
      case .sha256: Self.sha256Handle
      }
    }

    // Fetched once and never freed: with `EVP_sha1()`, OpenSSL would look up the implementation for every hash, which
    // takes longer than hashing a short message.
    private nonisolated(unsafe) static let sha1Handle = EVP_MD_fetch(nil, "SHA1", nil)
    private nonisolated(unsafe) static let sha256Handle = EVP_MD_fetch(nil, "SHA256", nil)

    var size: Int {
      switch self {
      case .sha1: 20
      case .sha256: 32
      }
    }
  }

  private let algorithm: Algorithm
  private let handle: OpaquePointer

  init(_ algorithm: Algorithm) throws(DataProtectionError) {
    guard let handle = EVP_MD_CTX_new() else { throw .crypto("EVP_MD_CTX_new") }
    guard EVP_DigestInit_ex(handle, algorithm.handle, nil) == 1 else {
      EVP_MD_CTX_free(handle)
      throw .crypto("EVP_DigestInit_ex")
    }
    self.algorithm = algorithm
    self.handle = handle
  }

  deinit { EVP_MD_CTX_free(handle) }

  /// Starts a new message.
  borrowing func restart() throws(DataProtectionError) {
    guard EVP_DigestInit_ex(handle, nil, nil) == 1 else { throw .crypto("EVP_DigestInit_ex") }
  }

  /// Copies the state of another hash of the same algorithm.
  borrowing func copyState(of other: borrowing DigestContext) throws(DataProtectionError) {
    guard EVP_MD_CTX_copy_ex(handle, other.handle) == 1 else { throw .crypto("EVP_MD_CTX_copy_ex") }
  }

  borrowing func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) {
    guard EVP_DigestUpdate(handle, bytes.baseAddress, bytes.count) == 1 else { throw .crypto("EVP_DigestUpdate") }
  }

  /// Returns the digest. No further call is allowed.
  borrowing func finish() throws(DataProtectionError) -> [UInt8] {
    try [UInt8](count: algorithm.size) { (buffer) throws(DataProtectionError) in try finish(into: buffer) }
  }

  /// Writes the digest into `target`, which must have the algorithm's size.
  borrowing func finish(into target: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
    guard target.count == algorithm.size else { throw .crypto("a digest of \(target.count) bytes") }
    let bytes = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard EVP_DigestFinal_ex(handle, bytes, nil) == 1 else { throw .crypto("EVP_DigestFinal_ex") }
  }
}

/// Computes SHA-1 and SHA-256. SHA-1 is used only where Apple's formats require it, never for security.
package enum Digest {
  /// Returns the SHA-1, 20 bytes.
  package static func sha1(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try sha1(buffer) }
  }

  /// Returns the SHA-1 of a buffer, 20 bytes.
  package static func sha1(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha1)
    try context.update(bytes)
    return try context.finish()
  }

  /// Returns the SHA-256, 32 bytes.
  package static func sha256(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try sha256(buffer) }
  }

  /// Returns the SHA-256 of a buffer, 32 bytes.
  package static func sha256(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha256)
    try context.update(bytes)
    return try context.finish()
  }
}

/// Computes the SHA-1 or SHA-256 of messages that arrive in portions.
///
/// Not to be used from two threads at once.
package final class DigestStream {
  /// The digests that Apple's formats use.
  package enum Algorithm: Sendable {
    /// SHA-1 gives 20 bytes, SHA-256 gives 32.
    case sha1, sha256

    fileprivate var internalAlgorithm: DigestContext.Algorithm {
      switch self {
      case .sha1: .sha1
      case .sha256: .sha256
      }
    }
  }

  private let context: DigestContext
  private let result: UnsafeMutableRawBufferPointer

  /// Creates a stream at the start of a message.
  ///
  /// - Throws: `.cryptoFailed`.
  package init(_ algorithm: Algorithm) throws(DataProtectionError) {
    context = try DigestContext(algorithm.internalAlgorithm)
    result = .allocate(byteCount: algorithm.internalAlgorithm.size, alignment: 16)
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

/// HMAC (RFC 2104).
enum MessageAuthentication {
  static func code(
    _ algorithm: DigestContext.Algorithm, key: UnsafeRawBufferPointer, message: [UInt8]
  ) throws(DataProtectionError) -> [UInt8] {
    try [UInt8](count: algorithm.size) { (buffer) throws(DataProtectionError) in
      try code(algorithm, key: key, message: message, into: buffer)
    }
  }

  /// Writes the code into a buffer of the algorithm's size, for a code that is secret.
  static func code(
    _ algorithm: DigestContext.Algorithm, key: UnsafeRawBufferPointer, message: [UInt8],
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) {
    guard let keySize = Int32(exactly: key.count) else { throw .crypto("an HMAC key of \(key.count) bytes") }
    let target = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard HMAC(algorithm.handle, key.baseAddress, keySize, message, message.count, target, nil) != nil else {
      throw .crypto("HMAC")
    }
  }
}

extension Digest {
  /// The version of OpenSSL's libcrypto in this process.
  package static var libraryVersion: String {
    "\(OPENSSL_version_major()).\(OPENSSL_version_minor()).\(OPENSSL_version_patch())"
  }
}
