import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("DER property lists with one fault")
struct DERFaultTests {
  private static func date(_ text: String, tag: UInt8 = 0x18) -> [UInt8] { [tag, UInt8(text.utf8.count)] + text.utf8 }

  static let faultyInputs: [FaultyInput] = [
    FaultyInput("no bytes", [], .truncated, at: 0),
    FaultyInput("a tag without a length", [0x0C], .truncated, at: 1),
    FaultyInput("a string cut short", [0x0C, 0x03, 0x41, 0x42], .truncated, at: 2),
    FaultyInput("a long length cut short", [0x04, 0x82, 0x01], .truncated, at: 2),
    FaultyInput("an indefinite length", [0x30, 0x80, 0x00, 0x00], .malformed, at: 1),
    FaultyInput("a long form for a short length", [0x04, 0x81, 0x01, 0x00], .malformed, at: 1),
    FaultyInput(
      "a length with a leading zero", [0x04, 0x82, 0x00, 0x80] + [UInt8](repeating: 0, count: 128), .malformed, at: 1),
    FaultyInput("a length of five bytes", [0x04, 0x85, 0, 0, 0, 0, 1, 0], .malformed, at: 1),
    FaultyInput("a byte after the value", [0x02, 0x01, 0x00, 0x00], .trailingBytes, at: 3),
    FaultyInput("an unknown tag", [0x09, 0x00], .malformed, at: 0),
    FaultyInput("a set with the constructed bit", [0xF1, 0x00], .malformed, at: 0),
    FaultyInput("a null with contents", [0x05, 0x01, 0x00], .malformed, at: 0),
    FaultyInput("a boolean without a byte", [0x01, 0x00], .malformed, at: 0),
    FaultyInput("a boolean of two bytes", [0x01, 0x02, 0x00, 0x01], .malformed, at: 0),
    FaultyInput("an integer without bytes", [0x02, 0x00], .malformed, at: 0),
    FaultyInput("an integer of nine bytes", [0x02, 0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0], .malformed, at: 0),
    FaultyInput("an integer with a needless zero", [0x02, 0x02, 0x00, 0x7F], .malformed, at: 0),
    FaultyInput("an integer with a needless FF", [0x02, 0x02, 0xFF, 0x80], .malformed, at: 0),
    FaultyInput("a string that is not UTF-8", [0x0C, 0x01, 0xFF], .malformed, at: 0),
    FaultyInput("an element that runs past its array", [0x30, 0x02, 0x0C, 0x01], .truncated, at: 4),
    FaultyInput("an unknown tag inside an array", [0x30, 0x02, 0x1F, 0x00], .malformed, at: 2),
    FaultyInput("a pair that is a SET", [0x31, 0x06, 0x31, 0x04, 0x0C, 0x00, 0x0C, 0x00], .malformed, at: 2),
    FaultyInput("a key without a value", [0x31, 0x04, 0x30, 0x02, 0x0C, 0x00], .truncated, at: 6),
    FaultyInput("three values in a pair", [0x31, 0x08, 0x30, 0x06, 0x0C, 0, 0x0C, 0, 0x0C, 0], .trailingBytes, at: 8),
    FaultyInput("a date without a zone", date("20200106140001"), .malformed, at: 0),
    FaultyInput("a date with a trailing zero in its fraction", date("20200106140001.50Z"), .malformed, at: 0),
    FaultyInput("a date with an empty fraction", date("20200106140001.Z"), .malformed, at: 0),
    FaultyInput("a date with a letter", date("2020010614000xZ"), .malformed, at: 0),
    FaultyInput("a date with something after its zone", date("20200106140001Z0"), .malformed, at: 0),
    FaultyInput("a month 13", date("20201306140001Z"), .malformed, at: 0),
    FaultyInput("a 29th of February in 2021", date("20210229140001Z"), .malformed, at: 0),
    FaultyInput("an hour 24", date("20200106240001Z"), .malformed, at: 0),
    FaultyInput("a minute 60", date("20200106146001Z"), .malformed, at: 0),
    FaultyInput("a second 62", date("20200106140062Z"), .malformed, at: 0),
    FaultyInput("a UTCTime with a fraction", date("200106140001.5Z", tag: 0x17), .malformed, at: 0),
  ]

  @Test("A DER property list with a fault is rejected with the reason and the offset", arguments: faultyInputs)
  func rejected(_ input: FaultyInput) { input.check(.der, DERPropertyList.decode) }

  @Test("64 levels of DER are read and written, and 65 are rejected")
  func depth() throws {
    func nested(_ levels: Int) -> PropertyValue { (1..<levels).reduce(.array([])) { value, _ in .array([value]) } }
    func bytes(_ levels: Int) -> [UInt8] {
      (1..<levels).reduce([0x30, 0x00]) { inner, _ in
        inner.count < 0x80 ? [0x30, UInt8(inner.count)] + inner : [0x30, 0x81, UInt8(inner.count)] + inner
      }
    }
    let limit = DERPropertyList.maximumDepth
    #expect(try DERPropertyList.decode(bytes(limit)) == nested(limit))
    #expect(try DERPropertyList.encode(nested(limit)) == bytes(limit))
    #expect(throws: FormatError(.der, .overLimit, "more than 64 levels")) {
      try DERPropertyList.encode(nested(limit + 1))
    }
    // The outermost array has a header of three bytes, the 63 arrays in it headers of two.
    FaultyInput("too deep", bytes(limit + 1), .overLimit, at: 127 + 2).check(.der, DERPropertyList.decode)
  }

  @Test("100,000 DER values are read, and one more value is rejected")
  func valueCount() throws {
    func array(_ elements: Int) -> [UInt8] {
      let count = elements * 2
      return [0x30, 0x83, UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
        + [UInt8](repeating: 0, count: count).enumerated().map { $0.offset.isMultiple(of: 2) ? 0x05 : 0 }
    }
    let limit = DERPropertyList.maximumValueCount
    #expect(try DERPropertyList.decode(array(limit - 1)).arrayValue?.count == limit - 1)
    // The header of the array has five bytes, and each null has two.
    FaultyInput("too many", array(limit), .overLimit, at: 5 + 2 * (limit - 1)).check(.der, DERPropertyList.decode)
  }

  @Test("72 MiB of DER are read, and one more byte is rejected")
  func byteCount() throws {
    func data(_ total: Int) -> [UInt8] {
      let count = total - 6
      var bytes: [UInt8] = [0x04, 0x84]
      bytes += [UInt8](bigEndian: count, count: 4)
      bytes += [UInt8](repeating: 0, count: count)
      return bytes
    }
    let limit = DERPropertyList.maximumByteCount
    #expect(try DERPropertyList.decode(data(limit)).dataValue?.count == limit - 6)
    FaultyInput("too large", data(limit + 1), .overLimit, at: nil).check(.der, DERPropertyList.decode)
  }

  @Test("Truncating a decrypted item or flipping any of its bits does not crash the reader")
  func damage() throws {
    let bytes = try TestVectors.section("synthetic_backup")["items"].elements[2]["plaintext_der_hex"].bytes
    readDamagedVariants(of: bytes) { damaged in
      _ = try? DERPropertyList.decode(damaged)
      _ = try? KeychainItem(derDictionary: SensitiveBytes(copying: damaged), kind: .internetPassword)
    }
    for count in bytes.indices {
      #expect(throws: FormatError.self) { try DERPropertyList.decode(Array(bytes[..<count])) }
    }
  }
}
