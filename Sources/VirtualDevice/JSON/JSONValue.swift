import Foundation

/// A JSON value (RFC 8259) that keeps whole numbers whole, read and written by Foundation.
enum JSONValue: Sendable, Equatable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case real(Double)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
  var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }

  /// What the value is, for messages: "a string".
  var typeName: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .integer: "a whole number"
    case .real: "a fraction"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

/// The members of an object. They have no order; they are written sorted.
typealias JSONObject = [String: JSONValue]

/// Why bytes are not JSON.
struct JSONFault: Error, Equatable {
  let reason: String
}

extension JSONValue: Codable {
  /// - Throws: `JSONFault` for bytes that are not JSON.
  init(parsing bytes: [UInt8]) throws(JSONFault) {
    do {
      self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    } catch {
      throw JSONFault(reason: "it is not JSON")
    }
  }

  /// The value as indented text with a newline at its end; equal values are equal bytes.
  ///
  /// - Parameter device: Named in an error.
  /// - Throws: `.damaged` for a number that JSON has no form for, which no file can have brought.
  func encoded(for device: String) throws(VirtualDeviceError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      return try Array(encoder.encode(self)) + [UInt8(ascii: "\n")]
    } catch {
      throw VirtualDeviceError(.damaged, device, "a value has no form in JSON")
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode(JSONObject.self) {
      self = .object(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if container.decodeNil() {
      self = .null
    } else {
      self = .real(try container.decode(Double.self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .real(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let values): try container.encode(values)
    case .object(let members): try container.encode(members)
    }
  }
}
