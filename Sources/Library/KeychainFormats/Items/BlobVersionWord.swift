import Basics

/// The first word of every sealed item: a version number, and in bit 31 whether the fixed vector was used.
struct BlobVersionWord {
  static let numberMask: UInt32 = 0x7FFF_FFFF

  let number: UInt32
  let hasStaticIV: Bool

  init(number: UInt32, hasStaticIV: Bool) {
    self.number = number
    self.hasStaticIV = hasStaticIV
  }

  init(_ cursor: inout ByteCursor) throws(FormatError) {
    guard cursor.bytes.count <= ItemBlob.maximumByteCount else {
      throw FormatError(
        .itemBlob, .overLimit, "\(cursor.bytes.count) bytes; at most \(ItemBlob.maximumByteCount) are accepted")
    }
    let word = try cursor.takeLittleEndianWord("the version")
    self.init(number: word & Self.numberMask, hasStaticIV: word & ~Self.numberMask != 0)
  }

  var rawValue: UInt32 { number | (hasStaticIV ? ~Self.numberMask : 0) }

  /// Why a version that this project does not open is not opened.
  var unsupported: FormatError {
    let reason =
      switch number {
      case 0: "version 0 was written by iOS 4 and contains only the secret"
      case 1: "version 1 was never seen outside reader code"
      case 2, 3: "version \(number) has no access-control list"
      case 4, 5: "version \(number) contains an access-control list in an early format of iOS 8"
      case 6: "version 6 contains an access-control list and can be decrypted only on its device"
      case 7, 8: "version \(number) belongs to a device's own database"
      default: "version \(number) is not known"
      }
    return FormatError(.itemBlob, .unsupportedVersion, reason, offset: 0)
  }
}

extension ByteCursor {
  /// Everything to the end: ciphertext of any length, then the tag.
  mutating func takeSealedRest() throws(FormatError) -> (ciphertext: [UInt8], tag: [UInt8]) {
    guard remaining >= ItemBlob.tagByteCount else {
      throw FormatError(.itemBlob, .truncated, "the tag of 16 bytes does not fit", offset: offset)
    }
    let ciphertext = try takeBytes(remaining - ItemBlob.tagByteCount, "the ciphertext")
    return (ciphertext, try takeBytes(ItemBlob.tagByteCount, "the tag"))
  }
}
