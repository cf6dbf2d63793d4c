import Basics
import TestSupport
import Testing

@testable import KeychainFormats

@Suite("Malicious messages and archives in database items")
struct DatabaseItemFormatTests {
  private func read(_ message: [UInt8]) -> FormatError.Code? {
    do throws(FormatError) {
      _ = try DatabaseItemBlob(parsing: [8, 0, 0, 0] + message)
      return nil
    } catch {
      return error.code
    }
  }

  /// All required fields of an item, each empty.
  private let message: [UInt8] = [0x0A, 8, 0x0A, 0, 0x12, 2, 0x0A, 0, 0x1A, 0, 0x12, 6, 0x0A, 0, 0x12, 0, 0x1A, 0]

  @Test("A message with all fields is read, and a missing class means class 12")
  func requiredFields() throws {
    let blob = try DatabaseItemBlob(parsing: [7, 0, 0, 0] + message)
    #expect(blob.version == .v7)
    #expect(blob.keyClass == .whenPasscodeSetThisDeviceOnly)
    #expect(blob.secret.keyWrap?.type == ItemKeyWrap.classWrap)
    #expect(read(message + [0x18, 6]) == nil)
    #expect(read(message + [0x18, 6, 0x18, 13]) == .malformed, "the last of two fields counts")
    #expect(read(message + [0x18, 13, 0x18, 6]) == nil)
    #expect(read(message + [0x25, 1, 2, 3, 4, 0x29, 1, 2, 3, 4, 5, 6, 7, 8, 0x32, 1, 9]) == nil, "unknown fields")
    #expect(read(Array(message.dropLast(2))) == .truncated)
    for (field, code) in [
      ([0x05], FormatError.Code.malformed),  // no number
      ([0x1B], .malformed), ([0x1C], .malformed), ([0x1E], .malformed),  // groups, and an unknown type
      ([0x1A, 0], .malformed), ([0x08, 0], .malformed),  // a type that differs from the field's
      ([0x18], .truncated), ([0x18, 0x80], .truncated), ([0x32, 5, 1], .truncated), ([0x25, 1, 2], .truncated),
      ([0x18, 0x86, 0x00], .malformed), ([0x98, 0x00, 6], .malformed),  // not the shortest encoding
      ([0x18] + [UInt8](repeating: 0x80, count: 10) + [1], .malformed),  // more than ten bytes
      ([0x18] + [UInt8](repeating: 0xFF, count: 9) + [2], .malformed),  // more than 64 bits
      ([0x18] + [UInt8](repeating: 0xFF, count: 9) + [1], .malformed),  // -1
      ([0x18, 0x80, 0x80, 0x80, 0x80, 0x10], .malformed),  // 2^32
      ([0x32] + [UInt8](repeating: 0xFF, count: 9) + [1], .truncated),  // 2^64 - 1 bytes
    ] as [([UInt8], FormatError.Code)] {
      #expect(read(message + field) == code, "\(field.hex)")
    }
  }

  @Test("A message with the maximum number of fields is read, and one more field is rejected")
  func fieldCount() {
    let more = ProtobufReader.maximumFieldCount - 2
    #expect(read(message + (0..<more).flatMap { _ in [0x38, 1] as [UInt8] }) == nil)
    #expect(read(message + (0...more).flatMap { _ in [0x38, 1] as [UInt8] }) == .overLimit)
  }

  private func archive(_ edit: (inout PropertyDictionary, inout [PropertyValue]) -> Void) throws -> FormatError? {
    let box = try ArchivedBox(
      nonce: [UInt8](repeating: 1, count: 32), ciphertext: [2, 3], tag: [UInt8](repeating: 4, count: 16))
    var root = try #require(try BinaryPlist.decode(box.archive()).dictionaryValue)
    var objects = try #require(root["$objects"]?.arrayValue)
    edit(&root, &objects)
    root["$objects"] = root["$objects"] == nil ? nil : .array(objects)
    do throws(FormatError) {
      #expect(try ArchivedBox(archive: BinaryPlist.encode(.dictionary(root))) == box)
      return nil
    } catch {
      return error
    }
  }

  private func changing(_ object: Int, _ name: String, _ value: PropertyValue?) throws -> FormatError.Code? {
    try archive { _, objects in
      var members = objects[object].dictionaryValue ?? [:]
      members[name] = value
      objects[object] = .dictionary(members)
    }?.code
  }

  @Test("An archive is read by the names of its references, in any order of its objects")
  func names() throws {
    #expect(try archive { _, _ in } == nil, "equal texts may be stored once")
    #expect(try archive { root, _ in root["$top"] = .dictionary(["other": .uid(0), "root": .uid(1)]) } == nil)
    #expect(try changing(5, "$classes", nil) == nil)
    for name in ["SFCiphertext", "SFAuthenticationCode", "SFInitializationVector", "$class"] {
      #expect(try changing(1, name, nil) == .malformed)
      #expect(try changing(1, name, .uid(0)) == .malformed, "null")
      #expect(try changing(1, name, .uid(6)) == .malformed, "beyond the last")
      #expect(try changing(1, name, .uid(.max)) == .malformed)
      #expect(try changing(1, name, .uid(1)) == .malformed, "the object itself")
      #expect(try changing(1, name, .integer(2)) == .malformed)
    }
    for name in ["$archiver", "$version", "$objects", "$top"] {
      #expect(try archive { root, _ in root[name] = nil }?.code == .malformed)
    }
    #expect(try archive { root, _ in root["$top"] = .dictionary(["root": .uid(2)]) }?.code == .malformed)
    #expect(try archive { _, objects in objects[3] = .data([1, 2]) }?.reason == "the tag has 2 bytes, not 16")
    #expect(try archive { _, objects in objects[4] = .data([]) }?.code == .malformed)
    #expect(try archive { _, objects in objects[4] = .data([UInt8](repeating: 0, count: 129)) }?.code == .malformed)
  }

  @Test("An archive with deeply nested or cyclic containers is rejected")
  func deep() throws {
    var value = PropertyValue.array([])
    for _ in 0..<40 { value = .array([value]) }
    #expect(try archive { _, objects in objects[5] = value }?.code == .overLimit)
    // An array that contains itself: object 0, with references of one byte.
    let cycle: [UInt8] =
      Array("bplist00".utf8) + [0xA1, 0, 8] + [0, 0, 0, 0, 0, 0, 1, 1]
      + [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, 10]
    let error = #expect(throws: FormatError.self) { _ = try ArchivedBox(archive: cycle) }
    #expect(error?.reason.contains("contains itself") == true)
  }

  @Test("An access control keeps unknown members, and requires a class")
  func accessControl() throws {
    let simple = try ItemAccessControl(parsing: [UInt8](hex: "310c300a0c0470726f740c02616b"))
    #expect(simple == ItemAccessControl(protection: .whenUnlocked))
    #expect(simple.protectionCode == "ak" && simple.constraints == nil && !simple.isBound)

    let members: PropertyDictionary = [
      "prot": .string("ak"), "acl": .dictionary(["oe": .boolean(true)]), "later": .integer(3),
    ]
    let encoded = try DERPropertyList.encode(.dictionary(members))
    #expect(try ItemAccessControl(parsing: encoded).serialized() == encoded)
    for (name, value) in [
      ("prot", nil), ("prot", .integer(6)), ("acl", .boolean(true)), ("bound", .integer(1)),
    ] as [(String, PropertyValue?)] {
      var changed = members
      changed[name] = value
      #expect(throws: FormatError.self) { _ = try ItemAccessControl(members: changed) }
    }
    #expect(throws: FormatError.self) { _ = try ItemAccessControl(parsing: encoded + [0]) }
  }
}
