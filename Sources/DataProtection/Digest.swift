internal import COpenSSL

/// SHA-1 and SHA-256 of bytes at hand. SHA-1 stands where Apple's formats have it, never for security.
public enum Digest {
  /// 20 bytes.
  public static func sha1(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try sha1(buffer) }
  }

  public static func sha1(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha1)
    try context.update(bytes)
    return try context.finish()
  }

  /// 32 bytes.
  public static func sha256(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try sha256(buffer) }
  }

  public static func sha256(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha256)
    try context.update(bytes)
    return try context.finish()
  }
}

/// SHA-256 over bytes that arrive in portions, such as a file too large for memory.
public struct SHA256Stream: ~Copyable {
  private let context: DigestContext

  public init() throws(DataProtectionError) { context = try DigestContext(.sha256) }

  public mutating func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) {
    try context.update(bytes)
  }

  public mutating func update(_ bytes: [UInt8]) throws(DataProtectionError) {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try context.update(buffer) }
  }

  /// The 32 bytes of the digest.
  public consuming func finish() throws(DataProtectionError) -> [UInt8] {
    try context.finish()
  }
}

/// The same for SHA-1, which backup manifests use for the stored bytes of a file.
public struct SHA1Stream: ~Copyable {
  private let context: DigestContext

  public init() throws(DataProtectionError) { context = try DigestContext(.sha1) }

  public mutating func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) {
    try context.update(bytes)
  }

  /// The 20 bytes of the digest.
  public consuming func finish() throws(DataProtectionError) -> [UInt8] {
    try context.finish()
  }
}

/// SHA-1 of one short message after the other, without an allocation for each: a large backup has a million names.
public struct SHA1Hasher: ~Copyable {
  private let context: DigestContext
  private let digest = UnsafeMutableRawBufferPointer.allocate(
    byteCount: DigestContext.Algorithm.sha1.size, alignment: 16)

  public init() throws(DataProtectionError) { context = try DigestContext(.sha1) }

  deinit { digest.deallocate() }

  /// Lends the 20 bytes of the hash of two messages with one byte between them.
  public borrowing func hash<Value>(
    _ first: UnsafeRawBufferPointer, _ separator: UInt8, _ second: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) -> Value
  ) throws(DataProtectionError) -> Value {
    digest[0] = separator
    try context.restart()
    try context.update(first)
    try context.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(digest)[..<1]))
    try context.update(second)
    try context.finish(into: digest)
    return body(UnsafeRawBufferPointer(digest))
  }
}

/// HMAC (RFC 2104).
enum MessageAuthentication {
  static func code(
    _ algorithm: DigestContext.Algorithm, key: UnsafeRawBufferPointer, message: [UInt8]
  ) throws(DataProtectionError) -> [UInt8] {
    guard let keySize = Int32(exactly: key.count) else { throw .crypto("an HMAC key of \(key.count) bytes") }
    return try makeBytes(algorithm.size) { (buffer) throws(DataProtectionError) in
      let target = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
      guard HMAC(algorithm.handle, key.baseAddress, keySize, message, message.count, target, nil) != nil else {
        throw .crypto("HMAC")
      }
    }
  }
}
