import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("File records in a manifest")
struct FileRecordTests {
  @Test("synthetic_backup: every record is read, and unchanged after a round trip")
  func synthetic() throws {
    for vector in try TestVectors.section("synthetic_backup")["files"].elements {
      let bytes = try vector["file_blob_hex"].bytes
      let record = try FileRecord(archive: bytes)
      #expect(record.relativePath == (try vector["relativePath"].string))
      let isDirectory = try vector["flags"].integer == 2
      #expect(record.fileType == (isDirectory ? .directory : .regular))
      #expect((record.encryptionKey == nil) == isDirectory)
      if let key = record.encryptionKey {
        #expect(key.keyClass == record.protectionClass && key.wrappedKey.count == 40)
      }
      #expect(try FileRecord(archive: record.archived()) == record)
    }
  }

  private static let completeRecord = FileRecord(
    relativePath: "Library/Ünï", target: "../x", digest: [UInt8](repeating: 1, count: 20),
    encryptionKey: ClassWrappedKey(keyClass: .fileNone, wrappedKey: [UInt8](repeating: 2, count: 40)), mode: 0o100644,
    inode: .max, userID: -2, groupID: 0, lastModified: 1, lastStatusChange: 2, birth: -3, size: 1 << 40,
    protectionClass: .fileNone, extendedAttributes: [9], flags: 32)

  @Test("Foundation can read an archived record, whose fields have the names and the order of a device's")
  func foundationReads() throws {
    let bytes = try Self.completeRecord.archived()
    let root = try #require(
      try PropertyListSerialization.propertyList(from: Data(bytes), format: nil) as? [String: Any])
    #expect(root["$version"] as? Int == 100_000)
    #expect(root["$archiver"] as? String == "NSKeyedArchiver")
    let objects = try #require(root["$objects"] as? [Any])
    #expect(objects.first as? String == "$null")
    #expect((objects[1] as? [String: Any])?["Size"] as? Int == 1 << 40)

    let archive = try #require(try BinaryPlist.decode(bytes).dictionaryValue)
    let record = archive["$objects"]?.arrayValue?[1].dictionaryValue
    #expect(
      record?.entries.compactMap(\.key.stringValue) == [
        "$class", "RelativePath", "Target", "Digest", "EncryptionKey", "Mode", "InodeNumber", "UserID", "GroupID",
        "LastModified", "LastStatusChange", "Birth", "Size", "ProtectionClass", "ExtendedAttributes", "Flags",
      ])
    #expect(archive["$top"] == .dictionary(["root": .uid(1)]))
    #expect(try FileRecord(archive: bytes) == Self.completeRecord)
  }

  /// Returns an archive of a record (object 1) and other objects (from 2).
  private func archive(_ record: PropertyDictionary, _ otherObjects: [PropertyValue] = []) throws -> [UInt8] {
    try BinaryPlist.encode(
      .dictionary([
        "$top": .dictionary(["root": .uid(1)]),
        "$objects": .array([.string("$null"), .dictionary(record)] + otherObjects),
      ]))
  }

  @Test("A field's value may be stored directly, behind references, or in a wrapper that contains a reference")
  func tolerances() throws {
    let key = [UInt8](repeating: 0, count: 44)
    let bare = try FileRecord(archive: archive(["RelativePath": .string("a"), "EncryptionKey": .data(key)]))
    #expect(bare.encryptionKey?.wrappedKey.count == 40)
    let wrapped = try FileRecord(
      archive: archive(
        [
          "RelativePath": .uid(2), "EncryptionKey": .uid(4), "Mode": .uid(6), "Target": .uid(0),
          "Digest": .dictionary(["NS.data": .uid(5)]),
        ],
        [
          .dictionary(["NS.string": .uid(3)]), .string("a"), .dictionary(["NS.data": .uid(5)]), .data(key),
          .integer(0x4000),
        ]))
    #expect(wrapped.relativePath == "a")
    #expect(wrapped.encryptionKey?.wrappedKey.count == 40)
    #expect(wrapped.digest == key)
    #expect(wrapped.fileType == .directory)
    #expect(wrapped.target == nil)
    #expect(try FileRecord(archive: archive(["RelativePath": .string("")])).size == 0)
  }

  @Test("Records with one fault are rejected")
  func faults() throws {
    let records: [(name: String, record: PropertyDictionary)] = [
      ("no path", [:]), ("a null path", ["RelativePath": .uid(0)]), ("a number as path", ["RelativePath": .integer(1)]),
      ("a reference to itself", ["RelativePath": .uid(2)]), ("a reference to no object", ["RelativePath": .uid(9)]),
      ("the largest reference", ["RelativePath": .uid(.max)]),
      ("a string as mode", ["RelativePath": .string("a"), "Mode": .string("x")]),
      ("a negative mode", ["RelativePath": .string("a"), "Mode": .integer(-1)]),
      ("a negative size", ["RelativePath": .string("a"), "Size": .integer(-1)]),
      ("a class above 32 bits", ["RelativePath": .string("a"), "ProtectionClass": .integer(1 << 32)]),
      ("a string as digest", ["RelativePath": .string("a"), "Digest": .string("x")]),
      ("a real inode", ["RelativePath": .string("a"), "InodeNumber": .real(1)]),
      ("the record as its digest", ["RelativePath": .string("a"), "Digest": .uid(1)]),
    ]
    for (name, record) in records {
      let bytes = try archive(record, [.uid(2)])
      FaultyInput(name, bytes, .malformed, at: nil).check(.fileRecord, FileRecord.init(archive:))
    }
    for root in [PropertyValue.dictionary([:]), .array([]), .dictionary(["$objects": .array([])])] {
      FaultyInput("no root", try BinaryPlist.encode(root), .malformed, at: nil)
        .check(.fileRecord, FileRecord.init(archive:))
    }
  }

  @Test("A wrapped key has 44 or 76 bytes, with a little-endian class")
  func wrappedKeys() throws {
    let bytes: [UInt8] = [3, 0, 0, 0] + [UInt8](repeating: 5, count: 40)
    let key = try ClassWrappedKey(parsing: bytes)
    #expect(key.keyClass == .fileUntilFirstUserAuthentication)
    #expect(key.serialized() == bytes)
    #expect(try ClassWrappedKey(parsing: bytes + [UInt8](repeating: 0, count: 32)).wrappedKey.count == 72)
    for count in [0, 4, 43, 45, 75, 77] {
      FaultyInput("\(count) bytes", [UInt8](repeating: 0, count: count), .malformed, at: nil)
        .check(.wrappedKey, ClassWrappedKey.init(parsing:))
    }
    let field = try TestVectors.section("synthetic_backup")["manifest_key_field_hex"].bytes
    #expect(try ClassWrappedKey(parsing: field).serialized() == field)
  }

  @Test("A field is read through 16 references, and rejected with 17")
  func referenceChains() throws {
    func record(references: Int) throws -> [UInt8] {
      // The record has the first reference, and each object of the chain refers to the next.
      let chain = (1..<references).map { PropertyValue.uid(UInt64($0 + 2)) }
      return try archive(["RelativePath": .uid(2)], chain + [.string("end")])
    }
    #expect(try FileRecord(archive: record(references: 16)).relativePath == "end")
    FaultyInput("seventeen", try record(references: 17), .malformed, at: nil).check(
      .fileRecord, FileRecord.init(archive:))
  }

  /// Reads a record whose object has two members: the first key refers to the path "a", the second key to "b".
  private func readRecord(firstKey: [UInt8], secondKey: [UInt8]) throws -> FileRecord {
    func text(_ text: String) -> [UInt8] { [0x50 | UInt8(text.utf8.count)] + Array(text.utf8) }
    // The numbers count the property list's objects.
    let objects: [[UInt8]] = [
      [0xD2, 1, 2, 3, 4], text("$top"), text("$objects"),  // 0: {$top: 3, $objects: 4}
      [0xD1, 5, 6],  // 3: {root: 6}
      [0xA2, 7, 8],  // 4: [null, record]
      text("root"), [0x80, 1], [0x00],  // 6: a reference to object 1 of $objects
      [0xD2, 9, 10, 11, 12], firstKey, secondKey, text("a"), text("b"),  // 8: {firstKey: "a", secondKey: "b"}
    ]
    return try FileRecord(archive: PlistParts().with { $0.objects = objects }.bytes)
  }

  @Test("Keys may be UTF-16, and the first of two equal keys counts")
  func unusualKeys() throws {
    let name = Array("RelativePath".utf8)
    let asciiKey = [0x5C] + name
    let otherKey: [UInt8] = [0x51, 0x7A]
    func utf16Key(highByte: UInt8) -> [UInt8] { [0x6C] + name.flatMap { [highByte, $0] } }
    #expect(try readRecord(firstKey: utf16Key(highByte: 0), secondKey: otherKey).relativePath == "a")
    #expect(try readRecord(firstKey: otherKey, secondKey: utf16Key(highByte: 0)).relativePath == "b")
    #expect(try readRecord(firstKey: asciiKey, secondKey: utf16Key(highByte: 0)).relativePath == "a")
    #expect(throws: FormatError.self) { try readRecord(firstKey: otherKey, secondKey: utf16Key(highByte: 1)) }
  }

  @Test("A wrapper of null is rejected as a path")
  func nullWrapper() throws {
    let wrapper = PropertyValue.dictionary(["NS.string": .uid(0)])
    FaultyInput("a wrapper of null", try archive(["RelativePath": wrapper]), .malformed, at: nil)
      .check(.fileRecord, FileRecord.init(archive:))
  }

  @Test("The type bits of a mode determine the type of the file")
  func fileTypes() {
    let types: [(UInt32, FileRecord.FileType)] = [
      (0o100644, .regular), (0o040755, .directory), (0o120777, .symbolicLink), (0o010644, .other), (0, .other),
    ]
    for (mode, type) in types {
      #expect(FileRecord(relativePath: "", mode: mode, protectionClass: .fileNone).fileType == type)
    }
  }

  @Test("Truncating a record or flipping any of its bits does not crash the reader")
  func damage() throws {
    readDamagedVariants(of: try Self.completeRecord.archived()) { _ = try? FileRecord(archive: $0) }
  }
}
