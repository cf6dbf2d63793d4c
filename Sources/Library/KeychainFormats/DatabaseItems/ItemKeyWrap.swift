package import Basics

/// The key of a database item's secret, wrapped with the item's class key or with a key inside a key store.
///
/// ```
/// message   1: wrapped key, 2: reference key, 3: type
/// ```
///
/// Source: Apple `SecDbKeychainAKSWrappedKey.proto`.
package struct ItemKeyWrap: Sendable {
  /// The type of a key that is wrapped with the key of the item's class.
  package static let classWrap: Int32 = 0
  /// The type of a key that the key store itself wraps, used for items with access control. `referenceKey` identifies the
  /// key store's wrapping key.
  package static let referenceWrap: Int32 = 1

  /// The wrapped key, 40 bytes for a class wrap. The Simulator's key store writes the unwrapped key here, so the bytes
  /// are treated as a secret.
  package let wrappedKey: SensitiveBytes
  /// The reference key, opaque outside the key store that created it, or `nil` if the class key wraps the key.
  package let referenceKey: [UInt8]?
  /// `classWrap`, `referenceWrap`, or another number whose meaning is unknown.
  package let type: Int32

  /// Creates a wrap from its parts.
  package init(wrappedKey: SensitiveBytes, referenceKey: [UInt8]? = nil, type: Int32 = ItemKeyWrap.classWrap) {
    self.wrappedKey = wrappedKey
    self.referenceKey = referenceKey
    self.type = type
  }

  init(_ message: ByteCursor) throws(FormatError) {
    var reader = ProtobufReader(message)
    var wrappedKey: SensitiveBytes?
    var referenceKey: [UInt8]?
    var type = Self.classWrap
    while let field = try reader.next() {
      switch field.number {
      case 1: wrappedKey = SensitiveBytes(copying: try field.contents("the wrapped key").remainingBytes)
      case 2: referenceKey = try field.bytes("the reference key")
      case 3: type = try field.number("the type of the wrap")
      default: continue
      }
    }
    guard let wrappedKey else {
      throw FormatError(.itemBlob, .malformed, "the wrapped key is missing", offset: message.offset)
    }
    self.init(wrappedKey: wrappedKey, referenceKey: referenceKey, type: type)
  }

  /// Returns the message. The type is written even if it is 0.
  func serialized() -> [UInt8] {
    var message = ProtobufWriter()
    message.append(1, wrappedKey.withBytes { Array($0) })
    if let referenceKey { message.append(2, referenceKey) }
    message.append(3, varint: UInt64(bitPattern: Int64(type)))
    return message.bytes
  }
}

/// The reference key of the mock key store that Apple's tests and Simulators use. The mock's only key is public.
///
/// Source: Apple `mockaks.m` and its messages; never seen in the bytes of a real database.
package enum MockReferenceKey {
  /// The key of every mock key store: 31 digits and a NUL.
  package static let key = Array("1234567890123456789012345678901".utf8) + [0]

  /// Returns whether a reference key belongs to the mock key store.
  package static func matches(_ bytes: [UInt8]) -> Bool {
    bytes.withRawBytes { buffer in
      var reader = ProtobufReader(ByteCursor(buffer, format: .itemBlob))
      var storedKey: [UInt8]?
      do throws(FormatError) {
        while let field = try reader.next() {
          if field.number == 1 { storedKey = try field.bytes("the key") }
        }
      } catch {
        return false
      }
      return storedKey == key
    }
  }

  /// Returns a reference key that contains the given parameters, which this code does not interpret.
  package static func serialized(parameters: [UInt8]) -> [UInt8] {
    var message = ProtobufWriter()
    message.append(1, key)
    message.append(2, parameters)
    return message.bytes
  }
}
