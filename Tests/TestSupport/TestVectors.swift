import Basics
import Foundation
package import KeychainFormats

/// An entry in a JSON file of published or generated test vectors.
///
/// A path that is not in the file throws, so that a misspelled name fails a test instead of skipping it.
package struct TestVectors {
  package struct Missing: Error {
    package let path: String
    package let expected: String
  }

  private let value: Any
  private let path: String

  private init(value: Any, path: String) {
    self.value = value
    self.path = path
  }

  /// The published vectors, as a complete file.
  package static func load() throws -> TestVectors {
    try load(file: "test-vectors.json")
  }

  /// Keys and certificates in every format, created by `Tests/Support/make_certificate_vectors.py`.
  package static func certificates() throws -> TestVectors {
    try load(file: "certificate-vectors.json")
  }

  /// Signatures, ciphertexts and shared secrets of those keys, created by
  /// `Tests/Support/make_key_operation_vectors.py`.
  package static func keyOperations() throws -> TestVectors {
    try load(file: "key-operation-vectors.json")
  }

  /// Certificate chains with their faults, and PKCS#12 files, created by `Tests/Support/make_trust_vectors.py`.
  package static func trust() throws -> TestVectors {
    try load(file: "trust-vectors.json")
  }

  /// Reads a checked-in file, because the compiler took 45 seconds for 170 kB of embedded data.
  private static func load(file: String) throws -> TestVectors {
    let bytes = try Data(contentsOf: Repository.root.appending(path: "Tests/TestSupport").appending(path: file))
    return TestVectors(value: try JSONSerialization.jsonObject(with: bytes), path: "")
  }

  /// Database items of versions 2 to 8: blobs, faults, and a dump of encrypted entries.
  package static func databaseItems() throws -> TestVectors {
    try load(file: "database-item-vectors.json")
  }

  /// A database of a Simulator with its log.
  package static func database() throws -> TestVectors {
    try load(file: "database-vectors.json")
  }

  /// A section of the published vectors.
  package static func section(_ name: String) throws -> TestVectors { try load()[name] }

  /// The elements of a section that is a list.
  package static func list(_ name: String) throws -> [TestVectors] { try section(name).elements }

  package subscript(name: String) -> TestVectors {
    get throws {
      guard let member = (value as? [String: Any])?[name] else { throw missing("a member \(name)") }
      return TestVectors(value: member, path: "\(path)/\(name)")
    }
  }

  package var elements: [TestVectors] {
    get throws {
      guard let array = value as? [Any] else { throw missing("a list") }
      return array.enumerated().map { TestVectors(value: $0.element, path: "\(path)/\($0.offset)") }
    }
  }

  /// Returns the first element of a list whose member `name` is this string.
  package func element(named name: String) throws -> TestVectors {
    guard let element = try elements.first(where: { try $0["name"].string == name }) else {
      throw missing("an element named \(name)")
    }
    return element
  }

  /// The members of an object.
  package var members: [String: TestVectors] {
    get throws {
      guard let object = value as? [String: Any] else { throw missing("an object") }
      return Dictionary(
        uniqueKeysWithValues: object.map { ($0.key, TestVectors(value: $0.value, path: "\(path)/\($0.key)")) })
    }
  }

  package var string: String {
    get throws {
      guard let text = value as? String else { throw missing("a string") }
      return text
    }
  }

  /// The bytes of a string in hexadecimal.
  package var bytes: [UInt8] { get throws { try [UInt8](hex: string) } }

  /// The bytes of a string in base64.
  package var base64Bytes: [UInt8] {
    get throws {
      guard let data = Data(base64Encoded: try string) else { throw missing("base64") }
      return Array(data)
    }
  }

  package var integer: Int {
    get throws {
      guard let number = (value as? NSNumber)?.intValue else { throw missing("a number") }
      return number
    }
  }

  package var boolean: Bool {
    get throws {
      guard let flag = value as? Bool else { throw missing("a boolean") }
      return flag
    }
  }

  /// The value of an attribute. Strings and integers stand for themselves. An object has one member: `hex` for data, `date`
  /// for a date, `bool` for a boolean, or `dict` for a dictionary.
  package var property: PropertyValue {
    get throws {
      if let text = value as? String { return .string(text) }
      guard let object = value as? [String: Any] else { return .integer(Int64(try integer)) }
      if object["hex"] != nil { return .data(try self["hex"].bytes) }
      if object["date"] != nil { return .date(try DERDate.parse(self["date"].string)) }
      if object["bool"] != nil { return .boolean(try self["bool"].boolean) }
      return .dictionary(try self["dict"].propertyDictionary)
    }
  }

  /// The members of an object as values of attributes, in the order of their names.
  package var propertyDictionary: PropertyDictionary {
    get throws {
      PropertyDictionary(
        try members.sorted { $0.key < $1.key }.map { .init(key: .string($0.key), value: try $0.value.property) })
    }
  }

  /// Whether an object has this member.
  package func has(_ name: String) -> Bool { (value as? [String: Any])?[name] != nil }

  /// A number written as decimal text.
  package var double: Double {
    get throws {
      guard let number = Double(try string) else { throw missing("a decimal number") }
      return number
    }
  }

  package var isNull: Bool { value is NSNull }

  private func missing(_ expected: String) -> Missing { Missing(path: path, expected: expected) }
}
