import KeychainFormats

/// A place in a JSON document: its value and the path that leads to it, so that every complaint names the place.
struct JSONNode {
  struct Fault: Error, Equatable {
    /// Such as `items[3].attributes.acct`.
    let path: String
    let reason: String
  }

  let value: JSONValue
  let path: String

  init(_ value: JSONValue, path: String) {
    self.value = value
    self.path = path
  }

  func fault(_ reason: String) -> Fault { Fault(path: path, reason: reason) }

  private func expected(_ type: String) -> Fault { fault("should be \(type), not \(value.typeName)") }

  func object() throws(Fault) -> JSONObject {
    guard let object = value.objectValue else { throw expected("an object") }
    return object
  }

  private func child(_ key: String, _ value: JSONValue) -> JSONNode {
    JSONNode(value, path: path.isEmpty ? key : "\(path).\(key)")
  }

  func member(_ key: String) throws(Fault) -> JSONNode {
    guard let node = try optional(key) else { throw fault("has no \"\(key)\"") }
    return node
  }

  /// Refuses an object that has not all of these members, and names all that are missing.
  func require(_ keys: [String]) throws(Fault) {
    let object = try object()
    let missing = keys.filter { object[$0] == nil }.map { "\"\($0)\"" }
    guard missing.isEmpty else { throw fault("has no \(Amounts.list(missing))") }
  }

  func optional(_ key: String) throws(Fault) -> JSONNode? {
    try object()[key].map { child(key, $0) }
  }

  func members() throws(Fault) -> [(key: String, node: JSONNode)] {
    try object().sorted { $0.key < $1.key }.map { ($0.key, child($0.key, $0.value)) }
  }

  func elements() throws(Fault) -> [JSONNode] {
    guard let values = value.arrayValue else { throw expected("an array") }
    return values.enumerated().map { JSONNode($1, path: "\(path)[\($0)]") }
  }

  /// Refuses members of an object that are not among these.
  func allow(only keys: [String]) throws(Fault) {
    for (key, node) in try members() where !keys.contains(key) {
      throw node.fault("is not known; known here: \(keys.joined(separator: ", "))")
    }
  }

  func string() throws(Fault) -> String {
    guard let text = value.stringValue else { throw expected("a string") }
    return text
  }

  func string(where isValid: (String) -> Bool, _ complaint: String) throws(Fault) -> String {
    let text = try string()
    guard isValid(text) else { throw fault(complaint) }
    return text
  }

  func boolean() throws(Fault) -> Bool {
    guard let flag = value.booleanValue else { throw expected("a boolean") }
    return flag
  }

  func integer() throws(Fault) -> Int64 {
    guard let number = value.integerValue else { throw expected("a whole number") }
    return number
  }

  func count(from least: Int) throws(Fault) -> Int {
    guard let number = Int(exactly: try integer()), number >= least else { throw fault("is less than \(least)") }
    return number
  }

  func date() throws(Fault) -> KeychainDate {
    guard let date = Timestamp.date(from: try string()) else { throw fault("is no RFC 3339 time") }
    return date
  }

  func productVersion() throws(Fault) -> ProductVersion {
    let text = try string()
    do throws(VirtualDeviceError) { return try ProductVersion(text) } catch { throw fault(error.reason) }
  }
}
