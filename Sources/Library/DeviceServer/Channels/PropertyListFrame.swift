import Basics
package import KeychainFormats

/// A property list with its length in front. Lockdown, the small services and DeviceLink send their messages in such
/// frames. The length has 32 bits, in network byte order.
package struct PropertyListFrame: Sendable {
  /// The encoding of a value.
  package enum Encoding: Sendable { case xml, binary }

  /// A frame of lockdown or of a small service, with at most one mebibyte.
  package static let small = PropertyListFrame(maximumByteCount: 1 << 20)
  /// A frame with a message of DeviceLink, with at most 64 mebibytes.
  package static let deviceLink = PropertyListFrame(maximumByteCount: 64 << 20)

  /// The maximum number of bytes that are accepted.
  package let maximumByteCount: Int

  /// Reads one frame.
  ///
  /// - Parameter limit: The maximum time until the first byte; the content must arrive within a minute.
  /// - Returns: `nil` if the stream ends before the frame.
  /// - Throws: `.overLimit` for a longer frame, `.malformed` for bytes that are not a property list.
  package func read(from channel: any ByteChannel, within limit: Duration?) throws(WireError) -> PropertyValue? {
    guard let header = try channel.readIfOpen(4, within: limit) else { return nil }
    let count = Int(bigEndianInteger(header))
    guard count <= maximumByteCount else {
      throw WireError(.overLimit, "a frame of \(count) bytes; at most \(maximumByteCount) are accepted")
    }
    return try Self.value(of: try channel.read(exactly: count, within: .seconds(60)))
  }

  /// Reads a property list, binary or XML.
  ///
  /// - Throws: `.malformed`.
  package static func value(of bytes: [UInt8]) throws(WireError) -> PropertyValue {
    do throws(FormatError) {
      return XMLPlist.isXML(bytes) ? try XMLPlist.decode(bytes) : try BinaryPlist.decode(bytes)
    } catch {
      throw WireError(.malformed, "a frame is not a property list: \(error.reason)")
    }
  }

  /// Returns a value as a frame.
  ///
  /// - Throws: `.malformed` for a value that the encoding cannot represent.
  package static func bytes(of value: PropertyValue, as encoding: Encoding) throws(WireError) -> [UInt8] {
    do throws(FormatError) {
      let body =
        switch encoding {
        case .xml: try XMLPlist.encode(value)
        case .binary: try BinaryPlist.encode(value)
        }
      return bigEndianBytes(UInt32(clamping: body.count)) + body
    } catch {
      throw WireError(.malformed, "an answer cannot be encoded: \(error.reason)")
    }
  }
}

extension PropertyValue {
  /// The integer, always signed. Clients write −13 as 2⁶⁴ − 13 in two of three encodings.
  var signedValue: Int64? {
    switch self {
    case .integer(let number): number
    case .unsignedInteger(let number): Int64(bitPattern: number)
    default: nil
    }
  }
}
