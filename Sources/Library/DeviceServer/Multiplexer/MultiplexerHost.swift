import Basics
import KeychainCrypto
package import KeychainFormats

/// The state of the virtual computer's usbmuxd: its devices, their pair records, and its listeners.
package final class MultiplexerHost: Sendable {
  /// The devices, with different identifiers.
  package let devices: [ServedDevice]
  /// The identifier of this usbmuxd. It depends only on the first device.
  package let buid: String

  private let listeners = Locked<[ObjectIdentifier: any ByteChannel]>([:])
  private static let maximumPairRecordByteCount = 64 << 10
  private static let maximumListenerCount = 8

  package init(_ devices: [ServedDevice]) {
    self.devices = devices
    var digest = (try? Digest.sha256(Array("usbmuxd \(devices.first?.udid ?? "")".utf8))) ?? []
    digest = Array(digest.prefix(16))
    // Version 8 of RFC 9562: a UUID whose bits the implementation chooses.
    if digest.count == 16 {
      digest[6] = digest[6] & 0x0F | 0x80
      digest[8] = digest[8] & 0x3F | 0x80
    }
    buid = UUIDText.uppercase(digest) ?? "00000000-0000-8000-8000-000000000000"
  }

  /// Returns the device with an identifier; `nil` if there is none.
  package func device(id: Int) -> ServedDevice? { devices.first { $0.deviceID == id } }

  private func device(udid: String) -> ServedDevice? { devices.first { $0.udid == udid } }

  /// Answers a request that needs no connection.
  ///
  /// - Throws: `.closed` if the device's files cannot be read or written.
  package func response(to request: MultiplexerRequest) throws(WireError) -> PropertyDictionary {
    switch request {
    case .listDevices:
      return ["DeviceList": .array(devices.map { .dictionary(Self.attached($0)) })]
    case .listListeners: return ["ListenerList": .array([])]
    case .readBUID: return ["BUID": .string(buid)]
    case .readPairRecord(let udid):
      guard let record = try device(udid: udid)?.pairingFile().pairRecord else {
        return MultiplexerResult.noDevice.answer
      }
      return ["PairRecordData": .data(record)]
    case .savePairRecord(let udid, let bytes):
      guard let device = device(udid: udid) else { return MultiplexerResult.noDevice.answer }
      guard bytes.count <= Self.maximumPairRecordByteCount else { return MultiplexerResult.badRequest.answer }
      try device.changePairings { $0.pairRecord = bytes }
      notify(["MessageType": .string("Paired"), "DeviceID": .integer(Int64(device.deviceID))])
      return MultiplexerResult.done.answer
    case .deletePairRecord(let udid):
      guard let device = device(udid: udid), try device.pairingFile().pairRecord != nil else {
        return MultiplexerResult.noDevice.answer
      }
      try device.changePairings { $0.pairRecord = nil }
      return MultiplexerResult.done.answer
    case .listen, .connect, .other: return MultiplexerResult.badRequest.answer
    }
  }

  /// Returns the description of a device, for lists and as an event.
  package static func attached(_ device: ServedDevice) -> PropertyDictionary {
    let deviceID = PropertyValue.integer(Int64(device.deviceID))
    // The speed of USB 2.0 in bits per second, and the product ID of iPhones (0x12A8).
    return [
      "MessageType": .string("Attached"), "DeviceID": deviceID,
      "Properties": .dictionary([
        "ConnectionSpeed": .integer(480_000_000), "ConnectionType": .string("USB"), "DeviceID": deviceID,
        "LocationID": .integer(Int64(device.deviceID) << 20), "ProductID": .integer(4776),
        "SerialNumber": .string(device.udid),
      ]),
    ]
  }

  /// Adds a connection that receives events.
  ///
  /// - Returns: `false` if there are too many listeners. Listeners may stay connected indefinitely, and would block other
  ///   clients.
  package func addListener(_ channel: any ByteChannel) -> Bool {
    listeners.withLock { listeners in
      guard listeners.count < Self.maximumListenerCount else { return false }
      listeners[ObjectIdentifier(channel)] = channel
      return true
    }
  }

  package func removeListener(_ channel: any ByteChannel) {
    listeners.withLock { $0[ObjectIdentifier(channel)] = nil }
  }

  /// Sends an event to every listener. The thread that reads from a listener notices if it has disconnected.
  package func notify(_ event: PropertyDictionary) {
    guard let bytes = try? MultiplexerPacket.bytes(of: event, tag: MultiplexerPacket.eventTag) else { return }
    for listener in listeners.withLock({ Array($0.values) }) { try? listener.write(bytes) }
  }
}
