import Basics

/// A key wrapped by a class key, with the class in front: `ManifestKey` and a file's `EncryptionKey`.
///
/// The class is little-endian. Source: iphone_backup_decrypt, `google_iphone_dataprotection.py`.
public struct ClassWrappedKey: Sendable, Hashable {
  /// The class whose key wraps this one.
  public var keyClass: KeyClass
  /// Forty bytes for a symmetric class key, seventy-two for a Curve25519 one.
  public var wrappedKey: [UInt8]

  /// Creates a field to write.
  public init(keyClass: KeyClass, wrappedKey: [UInt8]) {
    self.keyClass = keyClass
    self.wrappedKey = wrappedKey
  }

  /// Reads a class and the wrapped key after it.
  ///
  /// - Throws: `.malformed` unless there are 44 or 76 bytes.
  public init(parsing bytes: [UInt8]) throws(FormatError) {
    guard bytes.count == 44 || bytes.count == 76 else {
      throw FormatError(.wrappedKey, .malformed, "\(bytes.count) bytes; it has 44 or 76")
    }
    self.init(
      keyClass: KeyClass(rawValue: bytes[..<4].reversed().reduce(0) { $0 << 8 | UInt32($1) }),
      wrappedKey: Array(bytes[4...]))
  }

  /// The field's bytes: 44 for a symmetric class key, 76 for a Curve25519 one.
  public func serialized() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: keyClass.rawValue)
    return bytes + wrappedKey
  }
}
