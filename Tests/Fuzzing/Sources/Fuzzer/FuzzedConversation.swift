import Basics
import DeviceServer
import Foundation
import KeychainFormats
import KeyhaulKit
import VirtualDevice

/// The layers of a served device, with the bytes of a client as input: no sockets and no TLS.
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
    /// Returns the messages of a layer. Only one of those that end the connection is included, as the last message.
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

/// Whether the log of a device reported a failed request.
private final class FailureFlag: Sendable {
  let isSet = Locked(false)
}

/// A served device in memory that is the same in every run.
private final class FuzzedPhone: Sendable {
  static let shared: FuzzedPhone = {
    do {
      return try FuzzedPhone()
    } catch {
      fatalError("no device: \(error)")
    }
  }()

  let device: ServedDevice
  let host: MultiplexerHost
  private let directory: URL
  private let failure = FailureFlag()

  private init() throws {
    let memory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    directory = URL(filePath: memory).appending(path: "keyhaul-phone-\(ProcessInfo.processInfo.processIdentifier)")
    try? FileManager.default.removeItem(at: directory)
    // The requests contain the device's identifier, so it must be the same in every process.
    let environment = DeviceEnvironment(random: FixedRandomSource(), passcodeRounds: 1)
    let home = DeviceSet(path: directory.path, environment: environment)
    let fixture = try DeviceFixture(decoding: Array(ExampleDocuments.fixture.utf8), from: "example")
    device = try ServedDevice(
      home.create(from: fixture, keys: .published), deviceID: Self.deviceNumber, trust: .always, rounds: 1
    ) { [failure] line in
      if line.contains("failed") { failure.isSet.withLock { $0 = true } }
    }
    host = MultiplexerHost([device])
    if let pairing = Pairing(record: try Self.capturedPairing(), escrowBag: [1, 2, 3]) { try device.add(pairing) }
    atexit { try? FileManager.default.removeItem(at: FuzzedPhone.shared.directory) }
  }

  /// The number of the device in the captured messages.
  private static let deviceNumber = 7

  /// Returns whether a request failed since the last call.
  func resetFailure() -> Bool {
    failure.isSet.withLock { isSet in
      defer { isSet = false }
      return isSet
    }
  }

  /// Undoes what a client may change.
  ///
  /// - Returns: Whether no file of a client's backup remains.
  func reset() -> Bool {
    try? device.claim.replaceBackupPassword(nil)
    if let hostID = try? Self.capturedPairing()["HostID"]?.stringValue { device.ports.revoke(hostID: hostID) }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: device.device.directory)) ?? []
    return !names.contains("staged")
  }

  /// Returns whether the bytes contain a keybag with more than 10,000 iterations, which would take seconds.
  func needsManyIterations(_ bytes: [UInt8]) -> Bool {
    for tag in ["ITER", "DPIC"] {
      let header = Array(tag.utf8) + [0, 0, 0, 4]
      var remaining = bytes[...]
      while let range = remaining.firstRange(of: header) {
        let number = remaining[range.upperBound...].prefix(4).reduce(0) { $0 << 8 | Int($1) }
        if number > 10_000 { return true }
        remaining = remaining[range.upperBound...]
      }
    }
    return false
  }

  // MARK: Captured messages

  private struct Vectors: Decodable {
    struct Message: Decodable {
      let name: String
      let layer: String
      let from: String
      let hex: String
    }
    let vectors: [Message]
    let pairRecords: [[String: Value]]

    /// A member of a pairing record. Only texts are used.
    enum Value: Decodable {
      case text(String)
      case other

      init(from decoder: any Decoder) {
        self = (try? decoder.singleValueContainer().decode(String.self)).map { .text($0) } ?? .other
      }
    }
  }

  private static let vectors: Vectors? = {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let url = root.appending(path: "TestSupport/device-protocol-vectors.json")
    return (try? Data(contentsOf: url)).flatMap { try? JSONDecoder().decode(Vectors.self, from: $0) }
  }()

  private struct Missing: Error {}

  /// Returns the captured messages of clients, with this device's identifier.
  static func capturedMessages() throws -> [(name: String, layer: String, bytes: [UInt8])] {
    guard let vectors else { throw Missing() }
    return vectors.vectors.filter { $0.from == "client" }.map { message in
      let digits = message.hex.compactMap { $0.hexDigitValue.map { UInt8($0) } }
      let bytes = stride(from: 1, to: digits.count, by: 2).map { digits[$0 - 1] << 4 | digits[$0] }
      let forThisDevice = bytes.replacing(Array("55A16284-5725385955A4A8EF".utf8), with: Array(shared.device.udid.utf8))
      return (message.name, message.layer, forThisDevice)
    }
  }

  private static func capturedPairing() throws -> PropertyDictionary {
    guard let record = vectors?.pairRecords.first else { throw Missing() }
    var pairing: PropertyDictionary = [:]
    for (key, value) in record {
      guard case .text(let text) = value else { continue }
      pairing[key] = key.hasSuffix("Certificate") ? .data(Array(text.utf8)) : .string(text)
    }
    return pairing
  }
}

/// The messages of a client for complete requests, sent without waiting for the device.
private enum ClientScript {
  private static func frame(_ name: String, _ elements: [PropertyValue]) throws -> [UInt8] {
    try DeviceLink.frame(name, elements)
  }

  private static func status(_ code: Int64 = 0, _ value: PropertyValue = .dictionary([:])) throws -> [UInt8] {
    try frame("DLMessageStatusResponse", [.integer(code), .string(DeviceLink.emptyParameter), value])
  }

  private static func file(_ path: String, _ bytes: [UInt8]?) throws -> [UInt8] {
    let name = DeviceLink.lengthAndBytes(Array(path.utf8))
    guard let bytes else {
      return name + DeviceLink.block(.localError, Array("No such file".utf8)) + [0, 0, 0, 0]
        + (try status(HostStatus.several))
    }
    return name + DeviceLink.block(.data, bytes) + DeviceLink.block(.success) + [0, 0, 0, 0] + (try status())
  }

  private static func request(
    _ name: String, _ options: PropertyDictionary = [:], then responses: [[UInt8]]
  ) throws -> [UInt8] {
    var request: PropertyDictionary = [
      "MessageName": .string(name), "TargetIdentifier": .string(FuzzedPhone.shared.device.udid),
    ]
    request.entries += options.entries
    let hello: PropertyDictionary = [
      "MessageName": .string("Hello"), "SupportedProtocolVersions": .array([.real(2.0), .real(2.1)]),
    ]
    var messages = try frame("DLMessageVersionExchange", [.string("DLVersionsOk"), .integer(300)])
    messages += try frame("DLMessageProcessMessage", [.dictionary(hello)])
    messages += try frame("DLMessageProcessMessage", [.dictionary(request)])
    messages += responses.joined()
    messages += try frame("DLMessageDisconnect", [.string(DeviceLink.emptyParameter)])
    return messages
  }

  static func all() throws -> [[UInt8]] {
    let udid = FuzzedPhone.shared.device.udid
    let sourceID = "4C1F0A2B-9D3E5F60718293A4"
    let source: PropertyDictionary = ["SourceIdentifier": .string(sourceID)]
    let keychainFile: PropertyDictionary = [
      "SourceIdentifier": .string(sourceID), "DomainName": .string("KeychainDomain"),
      "RelativePath": .string("keychain-backup.plist"),
    ]
    let files = SampleFolder.shared.files
    func storedFiles(_ names: [String]) throws -> [[UInt8]] {
      try names.map { try file("\(sourceID)/\($0)", files[$0]) }
    }
    func missingFiles(_ names: [String]) throws -> [[UInt8]] { try names.map { try file("\(udid)/\($0)", nil) } }
    func statuses(_ count: Int) throws -> [[UInt8]] { try (0..<count).map { _ in try status() } }

    let manifestNames = ["Status.plist", "Manifest.plist", "Manifest.db"]
    let manifests = try storedFiles(manifestNames)
    let keychainName = "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"
    let freeSpace = try status(0, .integer(1 << 40))
    return [
      // Four directories, four statuses of the backup, two uploads, two moves and a removal.
      try request("Backup", then: missingFiles(["Status.plist"]) + [freeSpace] + statuses(13)),
      try request("Restore", source, then: storedFiles(manifestNames + ["Info.plist", keychainName])),
      try request(
        "ChangePassword", ["NewPassword": .string("new")],
        then: missingFiles(["Snapshot/Manifest.plist", "Manifest.plist"])),
      try request("Info", source, then: manifests), try request("List", source, then: manifests),
      try request("Unback", source, then: manifests + statuses(4)),
      try request("Extract", keychainFile, then: manifests + statuses(1)),
    ]
  }
}
