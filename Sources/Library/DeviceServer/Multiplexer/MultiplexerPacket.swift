import Basics
package import KeychainFormats

/// A packet of usbmuxd's protocol. The numbers are little-endian and have four bytes.
///
/// ```
/// packet  length of the packet, version, kind of message, tag, body (a property list)
/// ```
///
/// Source: libusbmuxd, `usbmuxd-proto.h`.
package struct MultiplexerPacket: Sendable {
  /// `propertyListVersion`, or 0 for the protocol's old binary form.
  package let version: UInt32
  /// An identifier that the answer repeats; `eventTag` for an event.
  package let tag: UInt32
  /// The bytes after the header.
  package let body: [UInt8]

  static let propertyListVersion: UInt32 = 1
  static let eventTag: UInt32 = 0
  private static let headerByteCount = 16
  private static let maximumByteCount = 1 << 20
  private static let propertyListMessage: UInt32 = 8
  private static let resultMessage: UInt32 = 1

  /// Reads one packet.
  ///
  /// - Returns: `nil` if the stream ends before the packet.
  /// - Throws: `.malformed` for a length below the header's size, `.overLimit`.
  package static func read(
    from channel: any ByteChannel, within limit: Duration?
  ) throws(WireError) -> MultiplexerPacket? {
    guard let header = try channel.readIfOpen(headerByteCount, within: limit) else { return nil }
    func number(at offset: Int) -> UInt32 {
      UInt32(truncatingIfNeeded: bigEndianInteger(header[offset..<(offset + 4)].reversed()))
    }
    let byteCount = Int(number(at: 0))
    guard byteCount >= headerByteCount else { throw WireError(.malformed, "a usbmuxd packet of \(byteCount) bytes") }
    guard byteCount <= maximumByteCount else {
      throw WireError(.overLimit, "a usbmuxd packet of \(byteCount) bytes; at most \(maximumByteCount) are accepted")
    }
    let body = try channel.read(exactly: byteCount - headerByteCount, within: .seconds(60))
    return MultiplexerPacket(version: number(at: 4), tag: number(at: 12), body: body)
  }

  /// Returns an answer or event as a packet. Clients accept only XML here.
  package static func bytes(of value: PropertyDictionary, tag: UInt32) throws(WireError) -> [UInt8] {
    do throws(FormatError) {
      return packet(
        version: propertyListVersion, message: propertyListMessage, tag: tag, try XMLPlist.encode(.dictionary(value)))
    } catch {
      throw WireError(.malformed, "an answer cannot be encoded: \(error.reason)")
    }
  }

  /// Returns a result in the old binary form, for a client that supports no other form.
  package static func binaryResult(_ result: MultiplexerResult, tag: UInt32) -> [UInt8] {
    packet(version: 0, message: resultMessage, tag: tag, littleEndian(UInt32(result.rawValue)))
  }

  private static func packet(version: UInt32, message: UInt32, tag: UInt32, _ body: [UInt8]) -> [UInt8] {
    [UInt32(headerByteCount + body.count), version, message, tag].flatMap(littleEndian) + body
  }

  private static func littleEndian(_ number: UInt32) -> [UInt8] { bigEndianBytes(number).reversed() }
}

/// The numbers of usbmuxd's results.
package enum MultiplexerResult: Int64, Sendable {
  case done = 0
  case badRequest = 1
  /// No such device, or no such pair record.
  case noDevice = 2
  case refused = 3
  case unsupportedVersion = 6

  /// The result as an answer.
  package var answer: PropertyDictionary { ["MessageType": .string("Result"), "Number": .integer(rawValue)] }
}

/// A request of a client to usbmuxd.
package enum MultiplexerRequest: Sendable, Hashable {
  case listDevices
  case listen
  case listListeners
  case readBUID
  case readPairRecord(udid: String)
  case savePairRecord(udid: String, [UInt8])
  case deletePairRecord(udid: String)
  case connect(device: Int, port: Int)
  /// A request that is unknown or incomplete.
  case other

  /// The request's name, for the log.
  package var name: String {
    switch self {
    case .listDevices: "ListDevices"
    case .listen: "Listen"
    case .listListeners: "ListListeners"
    case .readBUID: "ReadBUID"
    case .readPairRecord: "ReadPairRecord"
    case .savePairRecord: "SavePairRecord"
    case .deletePairRecord: "DeletePairRecord"
    case .connect(let device, let port): "Connect to port \(port) of device \(device)"
    case .other: "an unknown request"
    }
  }

  /// Reads a request.
  package init(_ value: PropertyDictionary) {
    let identifier = value["PairRecordID"]?.stringValue
    self =
      switch value["MessageType"]?.stringValue {
      case "ListDevices": .listDevices
      case "Listen": .listen
      case "ListListeners": .listListeners
      case "ReadBUID": .readBUID
      case "ReadPairRecord": identifier.map { .readPairRecord(udid: $0) } ?? .other
      case "SavePairRecord":
        if let identifier, let bytes = value["PairRecordData"]?.dataValue {
          .savePairRecord(udid: identifier, bytes)
        } else {
          .other
        }
      case "DeletePairRecord": identifier.map { .deletePairRecord(udid: $0) } ?? .other
      case "Connect":
        if let device = value["DeviceID"]?.integerValue.flatMap({ Int(exactly: $0) }),
          let port = value["PortNumber"]?.integerValue.flatMap({ UInt16(exactly: $0) })
        {
          // Clients write the port in network byte order.
          .connect(device: device, port: Int(port.byteSwapped))
        } else {
          .other
        }
      default: .other
      }
  }
}
