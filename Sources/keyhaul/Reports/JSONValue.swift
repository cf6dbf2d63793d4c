/// A JSON document whose objects keep the order in which they were written, so that equal reports are equal bytes.
indirect enum JSONValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([(String, JSONValue)])
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(booleanLiteral value: Bool) { self = .boolean(value) }
  init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements) }
  init(nilLiteral: ()) { self = .null }
}

extension JSONValue {
  static func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
  static func count(_ value: Int) -> JSONValue { .integer(Int64(value)) }

  var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
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
