import Basics
import TestSupport
import Testing

@testable import KeychainFormats

@Suite("Malicious messages in database items")
struct DatabaseItemMessageTests {
  /// The version word 8, little-endian. A message follows it.
  private static let versionWord: [UInt8] = [8, 0, 0, 0]

  /// All required fields of an item, each empty.
  private static let message: [UInt8] = [
    0x0A, 8, 0x0A, 0, 0x12, 2, 0x0A, 0, 0x1A, 0,  // the secret part: box, key wrap and tamper check
    0x12, 6, 0x0A, 0, 0x12, 0, 0x1A, 0,  // the attribute part: box, wrapped key and tamper check
  ]

  /// Reads a message as the message of a database item, and returns the code of the error; `nil` if it is accepted.
  private func errorCode(reading message: [UInt8]) -> FormatError.Code? {
    do throws(FormatError) {
      _ = try DatabaseItemBlob(parsing: Self.versionWord + message)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("A message with all required fields is read, and a missing class means class 12")
  func requiredFields() throws {
    let blob = try DatabaseItemBlob(parsing: [7, 0, 0, 0] + Self.message)
    #expect(blob.version == .v7)
    #expect(blob.keyClass == .whenPasscodeSetThisDeviceOnly)
    #expect(blob.secret.keyWrap?.type == ItemKeyWrap.classWrap)
  }

  @Test("A message is rejected as truncated if its last field is missing")
  func truncated() {
    #expect(errorCode(reading: Array(Self.message.dropLast(2))) == .truncated)
  }

  /// A field that is appended to a valid message.
  struct AppendedField: CustomTestStringConvertible {
    let name: String
    /// The tag (the field's number << 3 | its wire type) and the value. Field 3 is the class, a varint.
    let bytes: [UInt8]
    /// The expected error; `nil` if the message is accepted.
    let error: FormatError.Code?

    init(_ name: String, _ bytes: [UInt8], _ error: FormatError.Code?) {
      self.name = name
      self.bytes = bytes
      self.error = error
    }

    var testDescription: String { name }
  }

  private static let classTag: UInt8 = 3 << 3

  static let validFields = [
    AppendedField("class 6", [classTag, 6], nil),
    AppendedField("a valid class after an invalid one", [classTag, 13, classTag, 6], nil),
    AppendedField("an unknown field of four bytes", [0x25, 1, 2, 3, 4], nil),
    AppendedField("an unknown field of eight bytes", [0x29, 1, 2, 3, 4, 5, 6, 7, 8], nil),
    AppendedField("an unknown field with a length", [0x32, 1, 9], nil),
  ]

  static let invalidFields = [
    AppendedField("an invalid class after a valid one", [classTag, 6, classTag, 13], .malformed),
    AppendedField("field number 0", [0x05], .malformed),
    AppendedField("the start of a group", [0x1B], .malformed),
    AppendedField("the end of a group", [0x1C], .malformed),
    AppendedField("an unknown wire type", [0x1E], .malformed),
    AppendedField("a class with a length", [0x1A, 0], .malformed),
    AppendedField("a secret part that is a number", [0x08, 0], .malformed),
    AppendedField("a class without a value", [classTag], .truncated),
    AppendedField("a class whose value is cut short", [classTag, 0x80], .truncated),
    AppendedField("a length past the end", [0x32, 5, 1], .truncated),
    AppendedField("four bytes cut short", [0x25, 1, 2], .truncated),
    AppendedField("a class that is not in the shortest encoding", [classTag, 0x86, 0x00], .malformed),
    AppendedField("a tag that is not in the shortest encoding", [0x98, 0x00, 6], .malformed),
    AppendedField("a class of eleven bytes", [classTag] + [UInt8](repeating: 0x80, count: 10) + [1], .malformed),
    AppendedField("a class of 65 bits", [classTag] + [UInt8](repeating: 0xFF, count: 9) + [2], .malformed),
    AppendedField("class -1", [classTag] + [UInt8](repeating: 0xFF, count: 9) + [1], .malformed),
    AppendedField("class 2^32", [classTag, 0x80, 0x80, 0x80, 0x80, 0x10], .malformed),
    AppendedField("a length of 2^64 - 1", [0x32] + [UInt8](repeating: 0xFF, count: 9) + [1], .truncated),
  ]

  @Test(
    "An appended field is accepted, or rejected for its fault; the last of two classes counts",
    arguments: validFields + invalidFields)
  func appendedField(_ field: AppendedField) {
    #expect(errorCode(reading: Self.message + field.bytes) == field.error)
  }

  @Test("An error about a field has the format of the field's message")
  func formatOfErrors() throws {
    // Field 1 is a number, and field 2 is a byte that is not UTF-8.
    let message: [UInt8] = [0x08, 1, 0x12, 1, 0xFF]
    try message.withUnsafeBytes { bytes in
      var reader = ProtobufReader(ByteCursor(bytes, format: .keyedArchive))
      let (first, second) = (try reader.next(), try reader.next())
      let (number, text) = (try #require(first), try #require(second))
      let reads: [() throws -> Void] = [
        { _ = try number.contents("a field") }, { _ = try text.number("a field") }, { _ = try text.text("a field") },
      ]
      for read in reads {
        let error = #expect(throws: FormatError.self, performing: read)
        #expect(error?.format == .keyedArchive)
      }
    }
  }

  @Test("A message with the maximum number of fields is read, and one more field is rejected")
  func fieldCount() {
    let unknownField: [UInt8] = [0x38, 1]
    func message(unknownFields count: Int) -> [UInt8] {
      Self.message + Array(repeating: unknownField, count: count).flatMap(\.self)
    }
    // The message has two fields: the secret part and the attribute part.
    let maximum = ProtobufReader.maximumFieldCount - 2
    #expect(errorCode(reading: message(unknownFields: maximum)) == nil)
    #expect(errorCode(reading: message(unknownFields: maximum + 1)) == .overLimit)
  }
}

@Suite("Malicious archives in database items")
struct DatabaseItemArchiveTests {
  private typealias ArchiveEdit = (_ root: inout PropertyDictionary, _ objects: inout [PropertyValue]) -> Void

  /// The indexes of the archive's objects.
  private enum ObjectIndex {
    static let null = 0, box = 1, ciphertext = 2, tag = 3, nonce = 4, classDescription = 5, afterLast = 6
  }

  /// Reads the archive of a box after an edit, and returns the error. Without an error, the box must be unchanged.
  private func error(after edit: ArchiveEdit) throws -> FormatError? {
    let box = try ArchivedBox(
      nonce: [UInt8](repeating: 1, count: 32), ciphertext: [2, 3], tag: [UInt8](repeating: 4, count: 16))
    var root = try #require(try BinaryPlist.decode(box.archive()).dictionaryValue)
    var objects = try #require(root["$objects"]?.arrayValue)
    edit(&root, &objects)
    if root["$objects"] != nil { root["$objects"] = .array(objects) }
    do throws(FormatError) {
      #expect(try ArchivedBox(archive: BinaryPlist.encode(.dictionary(root))) == box)
      return nil
    } catch {
      return error
    }
  }

  /// Changes a member of one of the archive's objects, or removes it, and returns the code of the error.
  private func errorCode(
    settingMember name: String, of index: Int, to value: PropertyValue?
  ) throws -> FormatError.Code? {
    try error { _, objects in
      var members = objects[index].dictionaryValue ?? [:]
      members[name] = value
      objects[index] = .dictionary(members)
    }?.code
  }

  @Test("The references of an archive are followed by name, and members that are not needed are ignored")
  func names() throws {
    let topWithOtherMember = PropertyValue.dictionary(["other": .uid(0), "root": .uid(1)])
    #expect(try error { _, _ in } == nil)
    #expect(try error { root, _ in root["$top"] = topWithOtherMember } == nil)
    #expect(try errorCode(settingMember: "$classes", of: ObjectIndex.classDescription, to: nil) == nil)
  }

  @Test(
    "An archive is rejected if a member of the box is missing or does not refer to an object of its type",
    arguments: ["SFCiphertext", "SFAuthenticationCode", "SFInitializationVector", "$class"])
  func invalidReferences(member: String) throws {
    let values: [(name: String, value: PropertyValue?)] = [
      ("missing", nil), ("null", .uid(UInt64(ObjectIndex.null))),
      ("beyond the last", .uid(UInt64(ObjectIndex.afterLast))),
      ("the largest reference", .uid(.max)), ("the box itself", .uid(UInt64(ObjectIndex.box))),
      ("not a reference", .integer(Int64(ObjectIndex.ciphertext))),
    ]
    for (name, value) in values {
      #expect(try errorCode(settingMember: member, of: ObjectIndex.box, to: value) == .malformed, "\(name)")
    }
  }

  @Test("An archive without a required member is rejected", arguments: ["$archiver", "$version", "$objects", "$top"])
  func missingMember(name: String) throws {
    #expect(try error { root, _ in root[name] = nil }?.code == .malformed)
  }

  @Test("An archive is rejected if its root is not the box")
  func otherRoot() throws {
    let top = PropertyValue.dictionary(["root": .uid(UInt64(ObjectIndex.ciphertext))])
    #expect(try error { root, _ in root["$top"] = top }?.code == .malformed)
  }

  @Test("An archive with a tag or a nonce of a wrong length is rejected")
  func lengths() throws {
    let shortTag = try error { _, objects in objects[ObjectIndex.tag] = .data([1, 2]) }
    #expect(shortTag?.reason == "the tag has 2 bytes, not 16")
    for count in [0, 129] {
      let nonce = PropertyValue.data([UInt8](repeating: 0, count: count))
      #expect(try error { _, objects in objects[ObjectIndex.nonce] = nonce }?.code == .malformed)
    }
  }

  @Test("An archive with deeply nested containers is rejected")
  func deepNesting() throws {
    var nested = PropertyValue.array([])
    for _ in 0..<40 { nested = .array([nested]) }
    #expect(try error { _, objects in objects[ObjectIndex.classDescription] = nested }?.code == .overLimit)
  }

  @Test("An archive with an array that contains itself is rejected")
  func cycle() {
    let array: [UInt8] = [0xA1, 0]
    let error = #expect(throws: FormatError.self) { _ = try ArchivedBox(archive: PlistParts(array).bytes) }
    #expect(error?.reason.contains("contains itself") == true)
  }
}

@Suite("Access controls in database items")
struct ItemAccessControlTests {
  private static let members: PropertyDictionary = [
    "prot": .string("ak"), "acl": .dictionary(["oe": .boolean(true)]), "later": .integer(3),
  ]

  @Test("An access control without constraints contains only its protection class")
  func simple() throws {
    // {prot: ak}
    let control = try ItemAccessControl(parsing: [UInt8](hex: "310c300a0c0470726f740c02616b"))
    #expect(control == ItemAccessControl(protection: .whenUnlocked))
    #expect(control.protectionCode == "ak" && control.constraints == nil && !control.isBound)
  }

  @Test("An access control keeps unknown members, and bytes after it are rejected")
  func unknownMembers() throws {
    let encoded = try DERPropertyList.encode(.dictionary(Self.members))
    #expect(try ItemAccessControl(parsing: encoded).serialized() == encoded)
    #expect(throws: FormatError.self) { _ = try ItemAccessControl(parsing: encoded + [0]) }
  }

  @Test("An access control is rejected if it has no protection class or a member of the wrong type")
  func invalidMembers() {
    let invalidMembers: [(name: String, value: PropertyValue?)] = [
      ("prot", nil), ("prot", .integer(6)), ("acl", .boolean(true)), ("bound", .integer(1)),
    ]
    for (name, value) in invalidMembers {
      var members = Self.members
      members[name] = value
      #expect(throws: FormatError.self, "\(name)") { _ = try ItemAccessControl(members: members) }
    }
  }
}
