import Basics
import COpenSSL
import KeychainFormats

/// An OpenSSL hash computation.
struct DigestContext: ~Copyable {
  typealias Algorithm = DigestStream.Algorithm

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

  /// Copies the state of a computation with the same algorithm.
  borrowing func copyState(of source: borrowing DigestContext) throws(DataProtectionError) {
    guard EVP_MD_CTX_copy_ex(handle, source.handle) == 1 else { throw .crypto("EVP_MD_CTX_copy_ex") }
  }

  borrowing func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) {
    guard EVP_DigestUpdate(handle, bytes.baseAddress, bytes.count) == 1 else { throw .crypto("EVP_DigestUpdate") }
  }

  /// Returns the digest. Only `restart()` or `copyState(of:)` may follow.
  borrowing func finish() throws(DataProtectionError) -> [UInt8] {
    try [UInt8](count: algorithm.size) { (buffer) throws(DataProtectionError) in try finish(into: buffer) }
  }

  /// Writes the digest into `target`, which must have the algorithm's size. Only `restart()` or `copyState(of:)` may
  /// follow.
  borrowing func finish(into target: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
    guard target.count == algorithm.size else { throw .crypto("a digest of \(target.count) bytes") }
    let bytes = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard EVP_DigestFinal_ex(handle, bytes, nil) == 1 else { throw .crypto("EVP_DigestFinal_ex") }
  }
}

extension DigestStream.Algorithm {
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

/// HMAC (RFC 2104).
enum MessageAuthentication {
  static func code(
    _ algorithm: DigestContext.Algorithm, key: UnsafeRawBufferPointer, message: [UInt8]
  ) throws(DataProtectionError) -> [UInt8] {
    try [UInt8](count: algorithm.size) { (buffer) throws(DataProtectionError) in
      try code(algorithm, key: key, message: message, into: buffer)
    }
  }

  /// Writes the code into a buffer of the algorithm's size. Use this if the code is secret, so that no copy of it remains.
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
