/// A JSON document whose objects keep the order in which they were written, so that equal reports are equal bytes.
///
/// For writing alone; what a device's files hold is read, and has no order, with a type of `VirtualDevice`.
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
}
