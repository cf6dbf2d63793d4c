import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

/// A channel whose input was captured, and whose output is kept.
final class ScriptedChannel: ByteChannel {
  private struct State {
    var input: ArraySlice<UInt8>
    var output: [UInt8] = []
    var isClosed = false
  }

  private let state: Locked<State>
  /// The most bytes of one read, so that a stream is split everywhere.
  private let portion: Int

  init(_ input: [UInt8] = [], portion: Int = .max) {
    state = Locked(State(input: input[...]))
    self.portion = max(1, portion)
  }

  var output: [UInt8] { state.withLock { $0.output } }
  var rest: Int { state.withLock { $0.input.count } }

  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    let portion = portion
    return state.withLock { state in
      guard !state.isClosed else { return [] }
      let bytes = Array(state.input.prefix(min(count, portion)))
      state.input = state.input.dropFirst(bytes.count)
      return bytes
    }
  }

  func write(_ bytes: [UInt8]) throws(WireError) { state.withLock { $0.output += bytes } }
  func close() { state.withLock { $0.isClosed = true } }
}

/// A captured message of a published client or of a server that published clients accepted.
struct ProtocolVector: Sendable, CustomTestStringConvertible {
  let name: String
  let layer: String
  let sender: String
  let bytes: [UInt8]
  /// The content, with data shortened and numbers signed, as JSON.
  let decoded: String?
  /// The parts of a stream of files, as the capture names them.
  let parts: [(name: String, byteCount: Int)]

  var testDescription: String { name }
  var isFromClient: Bool { sender == "client" }

  static func file() throws -> [String: Any] {
    let url = Repository.root.appending(path: "Tests/TestSupport/device-protocol-vectors.json")
    return try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? [String: Any] ?? [:]
  }

  static let all: [ProtocolVector] = {
    let list = (try? file())?["vectors"] as? [[String: Any]] ?? []
    return list.compactMap { entry in
      guard let name = entry["name"] as? String, let layer = entry["layer"] as? String,
        let sender = entry["from"] as? String, let hex = entry["hex"] as? String, let bytes = try? [UInt8](hex: hex)
      else { return nil }
      let parts = (entry["parts"] as? [[Any]] ?? []).compactMap { part -> (String, Int)? in
        guard part.count == 2, let name = part[0] as? String, let count = part[1] as? Int else { return nil }
        return (name, count)
      }
      return ProtocolVector(
        name: name, layer: layer, sender: sender, bytes: bytes,
        decoded: entry["decoded"].flatMap { comparable($0) }, parts: parts)
    }
  }()

  static func named(_ name: String) throws -> ProtocolVector {
    guard let vector = all.first(where: { $0.name == name }) else { throw Missing(name: name) }
    return vector
  }

  struct Missing: Error { let name: String }

  /// JSON in one spelling.
  static func comparable(_ value: Any) -> String? {
    (try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed]))
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// A property list in the form of `decoded`.
  static func comparable(of value: PropertyValue) -> String? { comparable(json(value)) }

  private static func json(_ value: PropertyValue) -> Any {
    switch value {
    case .null: NSNull()
    case .boolean(let flag): flag
    case .integer(let number): number
    case .unsignedInteger(let number): Int64(bitPattern: number)
    case .real(let number): number
    case .date(let date): date.secondsSince1970
    case .data(let bytes):
      ["$data": bytes.count, "hex": String(hexadecimal: bytes.prefix(64))] as [String: Any]
    case .string(let text): text
    case .uid(let number): number
    case .array(let values), .set(let values): values.map(json)
    case .dictionary(let entries):
      Dictionary(entries.entries.map { ($0.key.stringValue ?? "", json($0.value)) }) { first, _ in first }
    }
  }
}

/// A virtual device that is served to a test.
final class ServedPhone: Sendable {
  let home: TemporaryDeviceSet
  let served: ServedDevice
  /// The lines of the log.
  let lines = Lines()

  /// - Parameter rounds: The number of iterations; a test does not need many.
  init(
    trust: TrustPolicy = .always, passcode: String = "", rounds: Int = 1,
    filledBy fill: (DeviceSession) throws(KeyhaulError) -> Void = { (_) throws(KeyhaulError) in }
  ) throws {
    home = try TemporaryDeviceSet()
    let device = try home.devices.create(
      DeviceName("phone"), DeviceOptions(), passcode: Secret(utf8: passcode), filledBy: fill)
    served = try ServedDevice(device, deviceID: 7, trust: trust, rounds: rounds) { [lines] in lines.add($0) }
  }
}

final class Lines: Sendable {
  private let kept = Locked<[String]>([])
  func add(_ line: String) { kept.withLock { $0.append(line) } }
  var all: [String] { kept.withLock { $0 } }
}
