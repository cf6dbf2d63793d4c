import Basics
import DeviceServer
import Foundation
import KeychainFormats
import KeyhaulKit
import VirtualDevice

/// The layers of a served device. Each layer reads the bytes of a client directly, without sockets and TLS.
enum FuzzedConversation: String, CaseIterable, FuzzedInput {
  case usbmuxd
  case lockdown
  /// The first byte selects the service.
  case services = "device-services"
  case fileConduit = "afc"
  case backup = "mobilebackup2"

  func run(_ bytes: [UInt8]) {
    _ = converse(bytes)
  }

  func accepts(_ bytes: [UInt8]) -> Bool { converse(bytes) }

  /// Runs a conversation.
  ///
  /// - Returns: Whether the device read all bytes and no request failed.
  private func converse(_ bytes: [UInt8]) -> Bool {
    let phone = FuzzedPhone.shared
    let channel = ClientBytes(self == .services ? Array(bytes.dropFirst()) : bytes)
    var followsProtocol = true
    do throws(WireError) {
      switch self {
      case .usbmuxd:
        let destination = try MultiplexerConversation(phone.host).run(on: channel)
        expect(destination?.reservation == nil, "no client gets a service without lockdown")
      case .lockdown: try lockdown(phone, channel)
      case .services: try service(bytes.first ?? 0, phone, channel)
      case .fileConduit: try FileConduit(SharedFiles()).run(on: channel)
      case .backup:
        guard !phone.needsManyIterations(bytes) else { return false }
        try BackupConversation(phone.device, on: channel).run()
      }
    } catch {
      // The bytes do not follow the protocol. The description of the error must not fail either.
      _ = String(describing: error)
      followsProtocol = false
    }
    expect(phone.reset(), "no file of a client's backup remains")
    return followsProtocol && channel.isAtEnd && !phone.resetFailure()
  }

  private func lockdown(_ phone: FuzzedPhone, _ channel: ClientBytes) throws(WireError) {
    var conversation = LockdownConversation(phone.device)
    while let value = try PropertyListFrame.small.read(from: channel, within: nil) {
      guard let request = value.dictionaryValue else { throw WireError(.malformed, "a request is not a dictionary") }
      switch try conversation.step(for: request) {
      // TLS would begin after a secure step. Here the requests of the session follow unencrypted.
      case .answer(let answer), .secure(let answer, _):
        try channel.write(try PropertyListFrame.bytes(of: .dictionary(answer), as: .xml))
      case .end: return
      }
    }
  }

  private func service(_ number: UInt8, _ phone: FuzzedPhone, _ channel: ClientBytes) throws(WireError) {
    // The lowest two bits select one of the four services.
    switch number & 3 {
    case 0: try NotificationProxy(phone.device).run(on: channel)
    case 1:
      try PropertyListServices.run(on: channel) {
        (PropertyListServices.installationProxy($0, applications: ["org.example.app"]), false)
      }
    case 2:
      try PropertyListServices.run(on: channel) {
        let (answer, isDone) = PropertyListServices.diagnostics($0)
        return ([answer], isDone)
      }
    default: try PropertyListServices.run(on: channel) { ([PropertyListServices.springBoard($0)], false) }
    }
  }

  func examples() throws -> [[UInt8]] {
    let capturedMessages = try FuzzedPhone.capturedMessages()
    /// Returns the messages of a layer. Of the messages that end the connection, only the first is included, at the end.
    func stream(_ layer: String) -> [UInt8] {
      let messages = capturedMessages.filter { $0.layer == layer }
      func endsConnection(_ name: String) -> Bool {
        ["Connect", "Shutdown", "Goodbye"].contains { name.contains($0) }
      }
      let lastMessages = messages.filter { endsConnection($0.name) }.prefix(1)
      return (messages.filter { !endsConnection($0.name) } + lastMessages).flatMap(\.bytes)
    }
    switch self {
    case .usbmuxd: return [stream("usbmuxd")]
    case .lockdown: return [stream("lockdown")]
    case .services:
      let icon: PropertyValue = .dictionary([
        "command": .string("getIconPNGData"), "bundleId": .string("org.example.app"),
      ])
      return [
        [0] + stream("notification_proxy"), [1] + stream("installation_proxy"), [2] + stream("diagnostics_relay"),
        [3] + (try PropertyListFrame.bytes(of: icon, as: .xml)),
      ]
    case .fileConduit: return [stream("afc")]
    case .backup: return try ClientScript.all()
    }
  }
}

/// A channel that provides the bytes of a client and then ends.
private final class ClientBytes: ByteChannel {
  private let remaining: Locked<ArraySlice<UInt8>>

  init(_ bytes: [UInt8]) { remaining = Locked(bytes[...]) }

  var isAtEnd: Bool { remaining.withLock { $0.isEmpty } }

  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    remaining.withLock { remaining in
      let bytes = Array(remaining.prefix(count))
      remaining = remaining.dropFirst(bytes.count)
      return bytes
    }
  }

  func write(_ bytes: [UInt8]) throws(WireError) {}
  func close() {}
}
