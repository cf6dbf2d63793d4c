import Basics
import DeviceServer
import Foundation
import KeychainFormats
import KeyhaulKit
import VirtualDevice

/// A flag that the log of a device sets when it reports a failed request.
private final class FailureFlag: Sendable {
  let isSet = Locked(false)
}

/// A served device in memory that is the same in every run.
final class FuzzedPhone: Sendable {
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
  ///
  /// The record of a keybag consists of the tag, the length 4 and a number: `ITER 00000004 00002710`.
  func needsManyIterations(_ bytes: [UInt8]) -> Bool {
    for tag in ["ITER", "DPIC"] {
      let header = Array(tag.utf8) + [0, 0, 0, 4]
      var remaining = bytes[...]
      while let range = remaining.firstRange(of: header) {
        let iterations = remaining[range.upperBound...].prefix(4).reduce(0) { $0 << 8 | Int($1) }
        if iterations > 10_000 { return true }
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

    /// A member of a pairing record. Only strings are used.
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
    let capturedUDID = "55A16284-5725385955A4A8EF"
    return vectors.vectors.filter { $0.from == "client" }.map { message in
      let digits = message.hex.compactMap { $0.hexDigitValue.map { UInt8($0) } }
      let bytes = stride(from: 1, to: digits.count, by: 2).map { digits[$0 - 1] << 4 | digits[$0] }
      let forThisDevice = bytes.replacing(Array(capturedUDID.utf8), with: Array(shared.device.udid.utf8))
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
