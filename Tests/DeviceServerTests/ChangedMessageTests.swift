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

  /// Returns a stream of captured messages with up to six changes.
  private static func stream(
    _ first: [[UInt8]], then messages: [[UInt8]], _ random: inout SeededRandom
  ) -> [UInt8] {
    var bytes = first.randomElement(using: &random) ?? []
    for _ in 0..<Int.random(in: 0...4, using: &random) { bytes += messages.randomElement(using: &random) ?? [] }
    for _ in 0..<Int.random(in: 0...6, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0...3, using: &random) {
      case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.remove(at: index)
      case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
      default: bytes.removeLast(bytes.count - index)
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
    let vectors = ProtocolVector.all.filter { $0.isFromClient && layer.vectorLayers.contains($0.layer) }
    // The captured messages name another device. Its identifier has the same length.
    func messages(_ vectors: [ProtocolVector]) -> [[UInt8]] {
      vectors.map {
        $0.bytes.replacing(Array("55A16284-5725385955A4A8EF".utf8), with: Array(phone.served.udid.utf8))
      }
    }
    let all = messages(vectors)
    // A backup client begins with a request. Its other messages are responses.
    let first = layer == .backup ? messages(vectors.filter { $0.decoded?.contains("TargetIdentifier") == true }) : all
    try #require(first.count >= 3)
    let opening: [UInt8] =
      switch layer {
      case .lockdown: try ProtocolVector.named("mux.Connect.lockdown.request").bytes
      case .backup:
        try ["dl.VersionExchange.answer", "dl.Hello.request"].flatMap { try ProtocolVector.named($0).bytes }
      case .multiplexer, .services, .fileConduit: []
      }
    let greeting = ScriptedChannel(opening)
    var random = SeededRandom(seed: 52)
    try serve(greeting, on: phone, server, layer, &random)
    let count = Cases.count(20_000, quick: 400)
    var answeredCount = 0
    for _ in 0..<count {
      // A few clients omit the opening.
      let begin = Int.random(in: 0..<16, using: &random) > 0 ? opening : []
      let bytes = begin + Self.stream(first, then: all, &random)
      let channel = ScriptedChannel(bytes, portion: Int.random(in: 1...64, using: &random))
      try serve(channel, on: phone, server, layer, &random)
      if channel.output.count > greeting.output.count { answeredCount += 1 }
    }
    // Many changed messages must still get an answer.
    #expect(answeredCount > count / 4)
    #expect(try phone.served.pairingFile().pairings.isEmpty)
    #expect(try Self.files(of: phone) == files)
    let names = try FileManager.default.contentsOfDirectory(atPath: phone.served.device.directory)
    #expect(!names.contains("staged"))
  }

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
    return try ["device.json", "hardware.uid", "keybag", "keychain-2.db"].reduce(into: [:]) {
      $0[$1] = try Data(contentsOf: folder.appending(path: $1))
    }
  }
}
