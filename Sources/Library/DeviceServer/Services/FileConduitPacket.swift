import Basics

/// A packet of AFC, Apple's file conduit. All numbers are little-endian and have eight bytes.
///
/// ```
/// header   magic, length of the packet, length of the header and the fixed part, packet number, operation
/// packet   header, fixed part, payload
/// ```
///
/// Source: libimobiledevice, `afc.h`.
package struct FileConduitPacket: Sendable, Hashable {
  /// An identifier that the answer repeats.
  package var number: UInt64
  package var operation: UInt64
  /// The fixed part after the header: paths, handles and numbers.
  package var fixedPart: [UInt8]
  /// The bytes to write, or none.
  package var payload: [UInt8] = []

  private static let magic = Array("CFA6LPAA".utf8)
  private static let headerByteCount = 40
  private static let maximumByteCount = 17 << 20

  package init(number: UInt64, operation: UInt64, fixedPart: [UInt8], payload: [UInt8] = []) {
    (self.number, self.operation, self.fixedPart, self.payload) = (number, operation, fixedPart, payload)
  }

  /// Reads one packet.
  ///
  /// - Returns: `nil` if the stream ends before the packet.
  /// - Throws: `.malformed` for a wrong magic or lengths that contradict each other, `.overLimit`.
  package static func read(from channel: any ByteChannel) throws(WireError) -> FileConduitPacket? {
    guard let header = try channel.readIfOpen(headerByteCount, within: nil) else { return nil }
    guard header.starts(with: magic) else { throw WireError(.malformed, "an AFC packet without its magic") }
    func number(_ index: Int) -> UInt64 { littleEndianNumber(header, at: index * 8) ?? 0 }
    guard let packetByteCount = Int(exactly: number(1)), let payloadOffset = Int(exactly: number(2)),
      packetByteCount <= maximumByteCount
    else {
      throw WireError(.overLimit, "an AFC packet is longer than \(maximumByteCount) bytes")
    }
    guard payloadOffset >= headerByteCount, payloadOffset <= packetByteCount else {
      throw WireError(.malformed, "the lengths of an AFC packet contradict each other")
    }
    let body = try channel.read(exactly: packetByteCount - headerByteCount, within: .seconds(60))
    let fixedPartByteCount = payloadOffset - headerByteCount
    return FileConduitPacket(
      number: number(3), operation: number(4), fixedPart: Array(body[..<fixedPartByteCount]),
      payload: Array(body[fixedPartByteCount...]))
  }

  /// The packet's bytes.
  package var bytes: [UInt8] {
    let payloadOffset = UInt64(Self.headerByteCount + fixedPart.count)
    return Self.magic
      + [payloadOffset + UInt64(payload.count), payloadOffset, number, operation].flatMap(littleEndianBytes) + fixedPart
      + payload
  }
}

func littleEndianBytes(_ number: UInt64) -> [UInt8] { bigEndianBytes(number).reversed() }

/// Returns the number of 64 bits at an offset; `nil` if the bytes end before.
func littleEndianNumber(_ bytes: [UInt8], at offset: Int) -> UInt64? {
  guard offset >= 0, offset <= bytes.count - 8 else { return nil }
  return bigEndianInteger(bytes[offset..<(offset + 8)].reversed())
}
