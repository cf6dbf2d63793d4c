/// A JSON value (RFC 8259). Objects keep the order in which they were written, so that equal reports are equal bytes, and
/// whole numbers stay whole.
package enum JSONValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  /// A string that is written out of memory which is wiped, and never read: a secret.
  case sensitive(SensitiveBytes, SensitiveForm)
  case array([JSONValue])
  /// An array whose elements are made one by one, each time that they are asked for.
  case elements(count: Int, @Sendable (Int) -> JSONValue)
  case object([(String, JSONValue)])

  /// What a string says of the bytes.
  package enum SensitiveForm: Sendable {
    /// The bytes as text. They have to be UTF-8; others are replaced.
    case text
    case base64
  }
}

/// The members of an object, without their order.
package typealias JSONObject = [String: JSONValue]

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements) }
  package init(nilLiteral: ()) { self = .null }
}

extension JSONValue {
  package static func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
  package static func count(_ value: Int) -> JSONValue { .integer(Int64(value)) }

  /// An array that may be too long to be held: what is made of each of these, each time that it is written.
  package static func each<Element: Sendable>(
    _ elements: [Element], _ make: @escaping @Sendable (Element) -> JSONValue
  ) -> JSONValue {
    .elements(count: elements.count) { make(elements[$0]) }
  }

  /// An object with more members after its own; any other value as it is.
  package func adding(_ members: [(String, JSONValue)]) -> JSONValue {
    guard case .object(let own) = self else { return self }
    return .object(own + members)
  }

  /// An object whose members stand in the order of their names.
  package static func sorted(_ members: JSONObject) -> JSONValue {
    .object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  package var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  package var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  package var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  package var arrayValue: [JSONValue]? {
    switch self {
    case .array(let value): value
    case .elements(let count, let make): (0..<count).map(make)
    case .null, .boolean, .integer, .number, .string, .sensitive, .object: nil
    }
  }
  package var fields: [(String, JSONValue)]? { if case .object(let value) = self { value } else { nil } }
  package var objectValue: JSONObject? { fields.map { JSONObject($0) { first, _ in first } } }

  /// The value of an object's field.
  package subscript(name: String) -> JSONValue? { fields?.first { $0.0 == name }?.1 }

  /// What the value is, for messages: "a string".
  package var typeName: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .integer: "a whole number"
    case .number: "a fraction"
    case .string, .sensitive: "a string"
    case .array, .elements: "an array"
    case .object: "an object"
    }
  }
}

extension JSONValue: Equatable {
  /// Objects are equal where their fields are, in whatever order.
  package static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.sensitive(let left, let form), .sensitive(let right, let other)):
      form == other && left.constantTimeEquals(right)
    case (.array, .array), (.array, .elements), (.elements, .array), (.elements, .elements):
      left.arrayValue == right.arrayValue
    case (.object(let left), .object(let right)):
      left.count == right.count
        && zip(left.sorted { $0.0 < $1.0 }, right.sorted { $0.0 < $1.0 }).allSatisfy { $0.0 == $1.0 && $0.1 == $1.1 }
    case (.null, _), (.boolean, _), (.integer, _), (.number, _), (.string, _), (.sensitive, _), (.array, _),
      (.elements, _), (.object, _):
      false
    }
  }
}
