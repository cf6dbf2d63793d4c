import KeyhaulKit

/// A one-time password as Google Authenticator exports it.
///
/// The message is a Protocol Buffer with the fields secret (1), account (2), issuer (3), algorithm (4), digits (5),
/// type (6) and counter (7). It has no field for the period, which is always 30 seconds.
///
/// Source: google/google-authenticator-android; fields as described by dim13/otpauth (`migration.proto`).
struct MigrationMessage: Sendable {
  /// The maximum number of one-time passwords in a QR code.
  static let maximumBatchSize = 10

  private let bytes: SensitiveBytes

  /// Creates the message of a one-time password.
  ///
  /// - Returns: `nil` if the format cannot represent the number of digits or the period.
  init?(_ parameters: OneTimePassword.Parameters) {
    guard let digitsValue: UInt64 = [6: 1, 8: 2][parameters.digitCount] else { return nil }
    var fields = SensitiveBuffer()
    Self.append(field: 1, Base32.bytes(of: parameters.secret), to: &fields)
    Self.append(field: 2, SensitiveBytes(copying: Array(parameters.account.utf8)), to: &fields)
    Self.append(field: 3, SensitiveBytes(copying: Array(parameters.issuer.utf8)), to: &fields)
    let algorithmValue: UInt64 =
      switch parameters.algorithm {
      case .sha1: 1
      case .sha256: 2
      case .sha512: 3
      case .md5: 4
      }
    Self.append(field: 4, algorithmValue, to: &fields)
    Self.append(field: 5, digitsValue, to: &fields)
    // The value 1 of the field "type" is a counter, and 2 is the time.
    switch parameters.factor {
    case .time(let period):
      guard period == 30 else { return nil }
      Self.append(field: 6, 2, to: &fields)
    case .counter(let counter):
      Self.append(field: 6, 1, to: &fields)
      Self.append(field: 7, counter, to: &fields)
    }
    bytes = fields.bytes()
  }

  /// Returns whether the address of these one-time passwords fits in a QR code, at any index.
  static func fitsInCode(_ passwords: [MigrationMessage]) -> Bool {
    // Larger numbers take more bytes in the message. No export has as many QR codes as this number.
    let largestNumber = 1 << 20
    return address(of: passwords, index: largestNumber, of: largestNumber).count <= QRCode.capacity
  }

  /// Returns the `otpauth-migration` address of one-time passwords: a message in base64 with the fields passwords (1),
  /// version (2), number of addresses (3) and index (4).
  ///
  /// - Parameters:
  ///   - passwords: Up to `maximumBatchSize` messages.
  ///   - index: The index of this address, from 0.
  ///   - count: The total number of addresses.
  static func address(of passwords: [MigrationMessage], index: Int, of count: Int) -> SensitiveBytes {
    var message = SensitiveBuffer()
    for password in passwords { append(field: 1, password.bytes, to: &message) }
    append(field: 2, 1, to: &message)
    append(field: 3, UInt64(count), to: &message)
    append(field: 4, UInt64(index), to: &message)
    var address = SensitiveBuffer()
    address.append("otpauth-migration://offline?data=")
    var digits = SensitiveBuffer()
    message.withBytes { Base64Digits.append($0, to: &digits) }
    digits.withBytes { digits in
      for digit in digits {
        switch digit {
        case UInt8(ascii: "+"): address.append("%2B")
        case UInt8(ascii: "/"): address.append("%2F")
        case UInt8(ascii: "="): address.append("%3D")
        default: address.append(digit)
        }
      }
    }
    return address.bytes()
  }

  // The three lowest bits of a field's first byte are its wire type: 0 for a varint, 2 for bytes with their length.

  private static func append(field: UInt8, _ value: UInt64, to message: inout SensitiveBuffer) {
    message.append(field << 3)
    append(varint: value, to: &message)
  }

  private static func append(field: UInt8, _ bytes: SensitiveBytes, to message: inout SensitiveBuffer) {
    message.append(field << 3 | 2)
    append(varint: UInt64(bytes.count), to: &message)
    bytes.withBytes { message.append($0) }
  }

  /// Appends a number in groups of 7 bits, the lowest first. Every byte but the last has its highest bit set.
  private static func append(varint value: UInt64, to message: inout SensitiveBuffer) {
    var remaining = value
    while remaining >= 0x80 {
      message.append(UInt8(truncatingIfNeeded: remaining) | 0x80)
      remaining >>= 7
    }
    message.append(UInt8(remaining))
  }
}
