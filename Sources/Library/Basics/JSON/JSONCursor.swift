/// A value in a JSON document together with its path, which every error names.
package struct JSONCursor {
  package struct Fault: Error, Equatable {
    /// The path, such as `items[3].attributes.acct`.
    package let path: String
    package let reason: String

    package init(path: String, reason: String) {
      self.path = path
      self.reason = reason
    }
  }

  package let value: JSONValue
  package let path: String

  package init(_ value: JSONValue, path: String) {
    self.value = value
    self.path = path
  }

  package func fault(_ reason: String) -> Fault { Fault(path: path, reason: reason) }

  private func expected(_ type: String) -> Fault { fault("should be \(type), not \(value.typeName)") }

  private func fields() throws(Fault) -> [(String, JSONValue)] {
    guard let fields = value.fields else { throw expected("an object") }
    return fields
  }

  private func child(_ key: String, _ value: JSONValue) -> JSONCursor {
    JSONCursor(value, path: path.isEmpty ? key : "\(path).\(key)")
  }

  package func member(_ key: String) throws(Fault) -> JSONCursor {
    guard let node = try optional(key) else { throw fault("has no \"\(key)\"") }
    return node
  }

  /// Throws if an object lacks any of these members; the error lists all missing members.
  package func require(_ keys: [String]) throws(Fault) {
    let fields = try fields()
    let presentKeys = fields.map { key, _ in key }
    let missingKeys = keys.filter { !presentKeys.contains($0) }
    guard missingKeys.isEmpty else {
      throw fault("has no \(HumanReadable.list(missingKeys.map { "\"\($0)\"" }))")
    }
  }

  package func optional(_ key: String) throws(Fault) -> JSONCursor? {
    try fields().first { name, _ in name == key }.map { _, value in child(key, value) }
  }

  /// Returns the members of an object, sorted by key.
  package func members() throws(Fault) -> [(key: String, node: JSONCursor)] {
    try fields().sorted { $0.0 < $1.0 }.map { key, value in (key: key, node: child(key, value)) }
  }

  /// Returns the elements of an array, each created when it is accessed.
  package func elements() throws(Fault) -> LazyMapCollection<Range<Int>, JSONCursor> {
    let count: Int
    let makeElement: (Int) -> JSONValue
    switch value {
    case .array(let values):
      count = values.count
      makeElement = { values[$0] }
    // The elements of such an array are decoded when they are accessed.
    case .elements(let elementCount, let make):
      count = elementCount
      makeElement = make
    case .null, .boolean, .integer, .number, .string, .sensitive, .object: throw expected("an array")
    }
    return (0..<count).lazy.map { [path] index in JSONCursor(makeElement(index), path: "\(path)[\(index)]") }
  }

  /// Returns the elements of an optional array, or none if the member is missing.
  package func optionalElements(_ key: String) throws(Fault) -> [JSONCursor] {
    guard let node = try optional(key) else { return [] }
    return Array(try node.elements())
  }

  /// Throws if an object has a member that is not in the list.
  package func allow(only keys: [String]) throws(Fault) {
    let unknownFields = try fields().filter { key, _ in !keys.contains(key) }
    guard let (key, value) = unknownFields.min(by: { $0.0 < $1.0 }) else { return }
    throw child(key, value).fault("is not a known member; known members: \(keys.joined(separator: ", "))")
  }

  /// Throws if the value contains anything that Keyhaul would not write, such as an unknown member, an explicit null or
  /// a different number of elements. A missing member is not an error here.
  ///
  /// - Parameter written: The value that Keyhaul writes for the same content.
  package func requireNothing(beyond written: JSONValue) throws(Fault) {
    switch (value, written) {
    case (.object(let fields), .object):
      for (name, field) in fields {
        let node = child(name, field)
        guard let counterpart = written[name] else { throw node.fault("is not known") }
        try node.requireNothing(beyond: counterpart)
      }
    case (.array(let elements), .array(let counterparts)) where elements.count == counterparts.count:
      for (node, counterpart) in zip(try self.elements(), counterparts) {
        try node.requireNothing(beyond: counterpart)
      }
    case (.array(let elements), .elements(let count, let make)) where elements.count == count:
      for (index, node) in try self.elements().enumerated() { try node.requireNothing(beyond: make(index)) }
    default:
      guard value == written else { throw fault("differs from what Keyhaul writes") }
    }
  }

  /// Returns a string, or `nil` if the value is null.
  package func optionalString() throws(Fault) -> String? {
    if case .null = value { return nil }
    return try string()
  }

  package func string() throws(Fault) -> String {
    guard let text = value.stringValue else { throw expected("a string") }
    return text
  }

  package func string(where isValid: (String) -> Bool, _ reason: String) throws(Fault) -> String {
    let text = try string()
    guard isValid(text) else { throw fault(reason) }
    return text
  }

  package func boolean() throws(Fault) -> Bool {
    guard let flag = value.booleanValue else { throw expected("a boolean") }
    return flag
  }

  package func integer() throws(Fault) -> Int64 {
    guard let number = value.integerValue else { throw expected("a whole number") }
    return number
  }

  /// Returns an integer that is at least `minimum`.
  package func count(atLeast minimum: Int) throws(Fault) -> Int {
    guard let number = Int(exactly: try integer()), number >= minimum else { throw fault("is less than \(minimum)") }
    return number
  }

  package func date() throws(Fault) -> KeychainDate {
    guard let date = Timestamp.date(from: try string()) else { throw fault("is not an RFC 3339 time") }
    return date
  }
}
