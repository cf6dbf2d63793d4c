/// A place in a JSON document: its value and the path that leads to it, so that every complaint names the place.
package struct JSONNode {
  package struct Fault: Error, Equatable {
    /// Such as `items[3].attributes.acct`.
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

  package func object() throws(Fault) -> JSONObject {
    guard let object = value.objectValue else { throw expected("an object") }
    return object
  }

  private func child(_ key: String, _ value: JSONValue) -> JSONNode {
    JSONNode(value, path: path.isEmpty ? key : "\(path).\(key)")
  }

  package func member(_ key: String) throws(Fault) -> JSONNode {
    guard let node = try optional(key) else { throw fault("has no \"\(key)\"") }
    return node
  }

  /// Refuses an object that has not all of these members, and names all that are missing.
  package func require(_ keys: [String]) throws(Fault) {
    let object = try object()
    let missing = keys.filter { object[$0] == nil }.map { "\"\($0)\"" }
    guard missing.isEmpty else { throw fault("has no \(Amounts.list(missing))") }
  }

  package func optional(_ key: String) throws(Fault) -> JSONNode? {
    guard value.fields != nil else { throw expected("an object") }
    return value[key].map { child(key, $0) }
  }

  package func members() throws(Fault) -> [(key: String, node: JSONNode)] {
    guard let fields = value.fields else { throw expected("an object") }
    return fields.sorted { $0.0 < $1.0 }.map { ($0.0, child($0.0, $0.1)) }
  }

  package func elements() throws(Fault) -> [JSONNode] {
    guard let values = value.arrayValue else { throw expected("an array") }
    return values.enumerated().map { JSONNode($1, path: "\(path)[\($0)]") }
  }

  /// Refuses members of an object that are not among these.
  package func allow(only keys: [String]) throws(Fault) {
    for (key, node) in try members() where !keys.contains(key) {
      throw node.fault("is not known; known here: \(keys.joined(separator: ", "))")
    }
  }

  /// Refuses what is not in a value that was written of what was read here: a member that nobody knows, a null for what
  /// is left out.
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
      guard value == written else { throw fault("is not as it is written") }
    }
  }

  /// A string, or `nil` for null.
  package func optionalString() throws(Fault) -> String? {
    if case .null = value { return nil }
    return try string()
  }

  package func string() throws(Fault) -> String {
    guard let text = value.stringValue else { throw expected("a string") }
    return text
  }

  package func string(where isValid: (String) -> Bool, _ complaint: String) throws(Fault) -> String {
    let text = try string()
    guard isValid(text) else { throw fault(complaint) }
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

  package func count(from least: Int) throws(Fault) -> Int {
    guard let number = Int(exactly: try integer()), number >= least else { throw fault("is less than \(least)") }
    return number
  }

  package func date() throws(Fault) -> KeychainDate {
    guard let date = Timestamp.date(from: try string()) else { throw fault("is no RFC 3339 time") }
    return date
  }
}
