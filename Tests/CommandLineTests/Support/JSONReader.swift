import Foundation
import KeyhaulKit

@testable import keyhaul

/// Reads JSON that the program printed, with Foundation instead of the program's own parser.
enum JSONReader {
  static func read(_ bytes: [UInt8]) throws -> JSONValue {
    try JSONDecoder().decode(Node.self, from: Data(bytes)).value
  }

  private struct Node: Decodable {
    let value: JSONValue

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        value = .string(text)
      } else if let members = try? container.decode([String: Node].self) {
        value = .object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value.value) })
      } else if let elements = try? container.decode([Node].self) {
        value = .array(elements.map(\.value))
      } else if let flag = try? container.decode(Bool.self) {
        value = .boolean(flag)
      } else if let number = try? container.decode(Int64.self) {
        value = .integer(number)
      } else if container.decodeNil() {
        value = .null
      } else {
        value = .number(try container.decode(Double.self))
      }
    }
  }
}
