public import Basics

/// How the key of a database item's secret is kept: wrapped under its class, or as a reference that a key store opens.
///
/// Source: Apple `SecDbKeychainAKSWrappedKey.proto`.
public struct ItemKeyWrap: Sendable {
  /// `wrappedKey` is wrapped under the key of the item's class.
  public static let classWrap: Int32 = 0
  /// `wrappedKey` is sealed with a key that `referenceKey` stands for: an item with an access control.
  public static let referenceWrap: Int32 = 1

  /// Forty bytes for a class wrap. What the Simulator's key store writes is the key in clear, so that the bytes are kept
  /// as a secret.
  public let wrappedKey: SensitiveBytes
  /// The reference key, opaque outside the key store that made it; `nil` for a class wrap.
  public let referenceKey: [UInt8]?
  /// `classWrap`, `referenceWrap`, or a number of no known meaning.
  public let type: Int32

  /// Creates a wrap of its parts.
  public init(wrappedKey: SensitiveBytes, referenceKey: [UInt8]? = nil, type: Int32 = ItemKeyWrap.classWrap) {
    self.wrappedKey = wrappedKey
    self.referenceKey = referenceKey
    self.type = type
  }

  init(_ message: ByteCursor) throws(FormatError) {
    var reader = ProtobufReader(message)
    var (wrappedKey, referenceKey, type) = (SensitiveBytes?.none, [UInt8]?.none, Self.classWrap)
    while let field = try reader.next() {
      switch field.number {
      case 1: wrappedKey = SensitiveBytes(copying: try field.contents("the wrapped key").rest)
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

  /// The message, its type written even where it is 0.
  func serialized() -> [UInt8] {
    var message = ProtobufWriter()
    message.append(1, wrappedKey.withBytes { Array($0) })
    if let referenceKey { message.append(2, referenceKey) }
    message.append(3, varint: UInt64(bitPattern: Int64(type)))
    return message.bytes
  }
}

/// The reference key of the key store that stands in for a real one in Apple's tests and in Simulators: its key is public.
///
/// Source: Apple `mockaks.m` and its messages; never seen in the bytes of a real database.
package enum StandInReferenceKey {
  /// The one key that it ever uses: 31 digits and a NUL.
  package static let key = Array("1234567890123456789012345678901".utf8) + [0]

  /// Whether a reference key is one of the stand-in's.
  package static func matches(_ bytes: [UInt8]) -> Bool {
    bytes.withRawBytes { buffer in
      var reader = ProtobufReader(ByteCursor(buffer, format: .itemBlob))
      var found: [UInt8]?
      do throws(FormatError) {
        while let field = try reader.next() {
          if field.number == 1 { found = try field.bytes("the key") }
        }
      } catch {
        return false
      }
      return found == key
    }
  }

  /// A reference key with these parameters, opaque here.
  package static func serialized(parameters: [UInt8]) -> [UInt8] {
    var message = ProtobufWriter()
    message.append(1, key)
    message.append(2, parameters)
    return message.bytes
  }
}
