import Basics
import KeychainFormats
import TestSupport
import Testing

/// Bytes with one fault, and the expected error.
struct Fault: CustomTestStringConvertible, Sendable {
  let name: String
  let bytes: [UInt8]
  let code: FormatError.Code
  let offset: Int?

  init(_ name: String, _ bytes: [UInt8], _ code: FormatError.Code, at offset: Int?) {
    self.name = name
    self.bytes = bytes
    self.code = code
    self.offset = offset
  }

  init(_ name: String, hex: String, _ code: FormatError.Code, at offset: Int?) throws {
    self.init(name, try [UInt8](hex: hex), code, at: offset)
  }

  var testDescription: String { name }

  /// Runs a reader on the bytes and compares its error with the expected one.
  func check<Value>(_ format: FormatError.Format, _ read: ([UInt8]) throws(FormatError) -> Value) {
    do throws(FormatError) {
      _ = try read(bytes)
      Issue.record("\(name) was accepted")
    } catch {
      #expect(error.format == format, "\(name)")
      #expect(error.code == code, "\(name): \(error.reason)")
      #expect(error.offset == offset, "\(name): \(error.reason)")
    }
  }
}

/// Runs a reader on every prefix of some bytes and on every variant with one flipped bit. The test succeeds if nothing
/// crashes.
func readEveryDamage(of bytes: [UInt8], _ read: ([UInt8]) -> Void) {
  for count in bytes.indices { read(Array(bytes[..<count])) }
  for index in bytes.indices {
    for bit in 0..<8 {
      var damaged = bytes
      damaged[index] ^= 1 << bit
      read(damaged)
    }
  }
}
