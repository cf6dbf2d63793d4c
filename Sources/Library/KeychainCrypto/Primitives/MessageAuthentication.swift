import Basics
import COpenSSL

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
