import Basics
import KeychainFormats

/// The conversation of one connection with usbmuxd, until it ends or becomes a connection to a device.
package struct MultiplexerConversation: Sendable {
  /// The destination of a connection.
  package struct Destination: Sendable {
    package let device: ServedDevice
    package let port: Int
    /// The service behind a port that lockdown issued; `nil` if it is lockdown itself.
    package let reservation: ServicePorts.Reservation?
  }

  /// The port of lockdown.
  package static let lockdownPort = 62078
  private static let idleLimit = Duration.seconds(60)
  private let host: MultiplexerHost

  package init(_ host: MultiplexerHost) { self.host = host }

  /// Answers requests until the client connects to a device.
  ///
  /// - Parameters:
  ///   - channel: The connection.
  ///   - log: Receives the name of each request.
  /// - Returns: The destination of the connection; `nil` if the client closed it.
  /// - Throws: The errors of the channel; `.malformed` for bytes that are not usbmuxd's protocol.
  package func run(
    on channel: any ByteChannel, logging log: (String) -> Void = { _ in }
  ) throws(WireError) -> Destination? {
    var isListening = false
    defer { if isListening { host.removeListener(channel) } }
    while let packet = try MultiplexerPacket.read(from: channel, within: isListening ? nil : Self.idleLimit) {
      guard packet.version == MultiplexerPacket.propertyListVersion else {
        try channel.write(MultiplexerPacket.binaryResult(.unsupportedVersion, tag: packet.tag))
        continue
      }
      guard let value = try PropertyListFrame.value(of: packet.body).dictionaryValue else {
        throw WireError(.malformed, "a usbmuxd request is not a dictionary")
      }
      let request = MultiplexerRequest(value)
      log("usbmuxd: \(request.name)")
      switch request {
      case .connect(let deviceID, let port):
        let (destination, result) = destination(deviceID: deviceID, port: port)
        try send(result.answer, tag: packet.tag, on: channel)
        if let destination { return destination }
      case .listen:
        isListening = isListening || host.addListener(channel)
        try answerListen(isAccepted: isListening, tag: packet.tag, on: channel)
      case .listDevices, .listListeners, .readBUID, .readPairRecord, .savePairRecord, .deletePairRecord, .other:
        try send(try host.response(to: request), tag: packet.tag, on: channel)
      }
    }
    return nil
  }

  /// Answers a request to receive events. The first events are the connected devices.
  private func answerListen(isAccepted: Bool, tag: UInt32, on channel: any ByteChannel) throws(WireError) {
    guard isAccepted else { return try send(MultiplexerResult.refused.answer, tag: tag, on: channel) }
    try send(MultiplexerResult.done.answer, tag: tag, on: channel)
    for device in host.devices {
      try send(MultiplexerHost.attached(device), tag: MultiplexerPacket.eventTag, on: channel)
    }
  }

  private func send(_ value: PropertyDictionary, tag: UInt32, on channel: any ByteChannel) throws(WireError) {
    try channel.write(try MultiplexerPacket.bytes(of: value, tag: tag))
  }

  private func destination(deviceID: Int, port: Int) -> (destination: Destination?, result: MultiplexerResult) {
    guard let device = host.device(id: deviceID) else { return (nil, .noDevice) }
    if port == Self.lockdownPort { return (Destination(device: device, port: port, reservation: nil), .done) }
    guard let reservation = device.ports.claim(port: port) else { return (nil, .refused) }
    return (Destination(device: device, port: port, reservation: reservation), .done)
  }
}
