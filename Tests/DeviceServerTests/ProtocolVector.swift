import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

/// A captured message, sent by a published client or by a server that such clients accepted.
struct ProtocolVector: Sendable, CustomTestStringConvertible {
  let name: String
  let layer: String
  let sender: String
  let bytes: [UInt8]
  /// The content as JSON. Data is shortened, and unsigned numbers are written as signed ones.
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
    let entries = (try? file())?["vectors"] as? [[String: Any]] ?? []
    return entries.compactMap { entry in
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

  /// Returns a value as JSON with sorted keys, for comparisons.
  static func comparable(_ value: Any) -> String? {
    (try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed]))
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns a property list in the format of `decoded`.
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
