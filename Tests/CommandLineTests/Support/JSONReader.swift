import Foundation

@testable import keyhaul

/// Reads what the program printed, by Foundation and not by code of the program.
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

/// What tests ask of a document; the program only writes them.
extension JSONValue {
  var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
  var fields: [(String, JSONValue)]? { if case .object(let value) = self { value } else { nil } }

  /// The value of an object's field.
  subscript(name: String) -> JSONValue? { fields?.first { $0.0 == name }?.1 }
}

extension JSONValue: Equatable {
  /// Objects are equal where their fields are, in whatever order.
  static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.object(let left), .object(let right)):
      left.count == right.count && left.allSatisfy { name, value in right.contains { $0.0 == name && $0.1 == value } }
    default: false
    }
  }
}
