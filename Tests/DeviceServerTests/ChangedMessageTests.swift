import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

/// Sends captured messages of clients with random changes to each layer.
@Suite("Changed messages of backup clients")
struct ChangedMessageTests {
  /// A layer that receives changed messages.
  enum Layer: String, CaseIterable, CustomTestStringConvertible {
    case multiplexer, lockdown, services, fileConduit, backup

    var testDescription: String { rawValue }

    /// The layers of the captured messages to send.
    var vectorLayers: Set<String> {
      switch self {
      case .multiplexer: ["usbmuxd"]
      case .lockdown: ["lockdown"]
      case .services: ["notification_proxy", "installation_proxy", "diagnostics_relay"]
      case .fileConduit: ["afc"]
      case .backup: ["devicelink", "devicelink-files"]
      }
    }
  }

  /// The captured messages of a layer, for a phone.
  private struct Messages {
    let all: [[UInt8]]
    /// The messages with which a client can begin after the opening.
    let initial: [[UInt8]]
    /// The bytes that a client sends at the start of every connection.
    let opening: [UInt8]

    init(of layer: Layer, for phone: ServedPhone) throws {
      let vectors = ProtocolVector.all.filter { $0.isFromClient && layer.vectorLayers.contains($0.layer) }
      // The captured messages name another device. Its identifier has the same length.
      func messages(_ vectors: [ProtocolVector]) -> [[UInt8]] {
        vectors.map {
          $0.bytes.replacing(Array("55A16284-5725385955A4A8EF".utf8), with: Array(phone.served.udid.utf8))
        }
      }
      all = messages(vectors)
      // A backup client begins with a request. Its other messages are responses.
      let requests = vectors.filter { $0.decoded?.contains("TargetIdentifier") == true }
      initial = layer == .backup ? messages(requests) : all
      opening =
        switch layer {
        case .lockdown: try ProtocolVector.named("mux.Connect.lockdown.request").bytes
        case .backup:
          try ["dl.VersionExchange.answer", "dl.Hello.request"].flatMap { try ProtocolVector.named($0).bytes }
        case .multiplexer, .services, .fileConduit: []
        }
    }
  }

  /// Returns a stream of captured messages with up to six changes.
  private static func stream(of messages: Messages, _ random: inout SeededRandom) -> [UInt8] {
    var bytes = messages.initial.randomElement(using: &random) ?? []
    for _ in 0..<Int.random(in: 0...4, using: &random) { bytes += messages.all.randomElement(using: &random) ?? [] }
    for _ in 0..<Int.random(in: 0...6, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0...3, using: &random) {
      case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.remove(at: index)
      case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
      default: bytes.removeLast(bytes.count - index)  // Cuts the stream off.
      }
    }
    return bytes
  }

  @Test(
    "Changed messages are answered or end the connection, and change no item and no pairing",
    arguments: Layer.allCases)
  func changedMessages(layer: Layer) throws {
    let phone = try ServedPhone(trust: .ask { _ in }) { (session) throws(KeyhaulError) in
      try session.add(BackupTests.password("mail", .afterFirstUnlock))
    }
    let files = try Self.files(of: phone)
    let server = try DeviceServer([phone.served], at: .loopback(port: 0, usesIPv6: false)) { _ in }
    let messages = try Messages(of: layer, for: phone)
    // With fewer first messages, the streams would be too much alike.
    try #require(messages.initial.count >= 3)
    let openingChannel = ScriptedChannel(messages.opening)
    var random = SeededRandom(seed: 52)
    try serve(openingChannel, on: phone, server, layer, &random)
    let count = Cases.count(20_000, quick: 400)
    var answeredCount = 0
    for _ in 0..<count {
      // A few clients omit the opening.
      let opening = Int.random(in: 0..<16, using: &random) > 0 ? messages.opening : []
      let bytes = opening + Self.stream(of: messages, &random)
      let channel = ScriptedChannel(bytes, maximumReadCount: Int.random(in: 1...64, using: &random))
      try serve(channel, on: phone, server, layer, &random)
      if channel.output.count > openingChannel.output.count { answeredCount += 1 }
    }
    // Many changed messages must still get an answer.
    #expect(answeredCount > count / 4)
    #expect(try phone.served.pairingFile().pairings.isEmpty)
    #expect(try Self.files(of: phone) == files)
    let names = try FileManager.default.contentsOfDirectory(atPath: phone.served.device.directory)
    #expect(!names.contains("staged"))
  }

  /// Passes the messages of a channel to the part of the server that reads this layer.
  private func serve(
    _ channel: ScriptedChannel, on phone: ServedPhone, _ server: DeviceServer, _ layer: Layer,
    _ random: inout SeededRandom
  ) throws {
    switch layer {
    case .multiplexer, .lockdown: server.serve(channel)
    case .services:
      switch Int.random(in: 0..<3, using: &random) {
      case 0: try? NotificationProxy(phone.served).run(on: channel)
      case 1:
        try? PropertyListServices.run(on: channel) {
          (PropertyListServices.installationProxy($0, applications: ["org.example"]), false)
        }
      default:
        try? PropertyListServices.run(on: channel) {
          let (answer, isDone) = PropertyListServices.diagnostics($0)
          return ([answer, PropertyListServices.springBoard($0)], isDone)
        }
      }
    case .fileConduit: try? FileConduit(phone.served.sharedFiles).run(on: channel)
    case .backup:
      try? BackupConversation(phone.served, on: channel).run()
      // A captured request may set a password.
      try phone.served.claim.replaceBackupPassword(nil)
    }
  }

  /// The files of the device that a client may not change, by name.
  private static func files(of phone: ServedPhone) throws -> [String: Data] {
    let folder = URL(filePath: phone.served.device.directory)
    var files: [String: Data] = [:]
    for name in ["device.json", "hardware.uid", "keybag", "keychain-2.db"] {
      files[name] = try Data(contentsOf: folder.appending(path: name))
    }
    return files
  }
}
