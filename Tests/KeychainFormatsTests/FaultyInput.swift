import Basics
import KeychainFormats
import TestSupport
import Testing

/// A test case of a reader: bytes with one fault, and the error with which the reader must reject them.
struct FaultyInput: CustomTestStringConvertible, Sendable {
  /// The description of the fault.
  let name: String
  let bytes: [UInt8]
  /// The expected code of the error.
  let code: FormatError.Code
  /// The expected offset of the error in the bytes, or `nil` if the error must not have an offset.
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

  /// Checks that a reader rejects the bytes with the expected error.
  ///
  /// - Parameters:
  ///   - format: The expected format of the error.
  ///   - read: The reader.
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

/// Calls a reader with damaged variants of some bytes: every shorter prefix, and every copy with one flipped bit.
///
/// The reader may accept or reject a variant, but a crash ends the test process.
func readDamagedVariants(of bytes: [UInt8], _ read: ([UInt8]) -> Void) {
  for count in bytes.indices { read(Array(bytes[..<count])) }
  for bit in 0..<8 * bytes.count { read(bytes.flipping(bit: bit)) }
}
