import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Replacing the key of a file record")
struct FileRecordEditingTests {
  private let key = ClassWrappedKey(keyClass: .fileComplete, wrappedKey: [UInt8](repeating: 7, count: 40))
  private let digest = [UInt8](repeating: 9, count: 20)

  @Test("synthetic_backup: only the key and the digest of a record change, and a removed key leaves no trace")
  func roundTrip() throws {
    for vector in try TestVectors.section("synthetic_backup")["files"].elements {
      let bytes = try vector["file_blob_hex"].bytes
      let record = try FileRecord(archive: bytes)
      let changed = try FileRecord.replacing(encryptionKey: key, digest: digest, in: bytes)
      var expected = record
      expected.encryptionKey = key
      expected.digest = digest
      #expect(try FileRecord(archive: changed) == expected)
      let withoutKey = try FileRecord.replacing(encryptionKey: nil, digest: digest, in: changed)
      expected.encryptionKey = nil
      #expect(try FileRecord(archive: withoutKey) == expected)
      #expect(Data(withoutKey).range(of: Data(key.wrappedKey)) == nil, "the record contains no trace of the key")
    }
  }

  /// A string that the writer can encode, and malformed bytes of the same length that replace the string in the archive.
  private struct Replacement {
    let text: String
    let encodedText: [UInt8]
    let malformedBytes: [UInt8]

    /// UTF-8 with the byte F5.
    static let utf8Path = Replacement(
      text: "name!", encodedText: Array("name!".utf8), malformedBytes: [0x6E, 0xF5, 0xBA, 0x65, 0x21])
    /// UTF-16 with an unpaired surrogate.
    static let utf16Path = Replacement(
      text: "n\u{E000}me!", encodedText: [0xE0, 0x00, 0, 0x6D], malformedBytes: [0xD8, 0x00, 0, 0x6D])
    static let target = Replacement(
      text: "aim", encodedText: Array("aim".utf8), malformedBytes: [0x61, 0xFF, 0x6D])

    func apply(to bytes: inout [UInt8]) throws {
      let range = try #require(Data(bytes).range(of: Data(encodedText)))
      bytes.replaceSubrange(range, with: malformedBytes)
    }
  }

  @Test("Names that are not UTF-8 or UTF-16 are preserved byte for byte", arguments: [false, true])
  func undecodedNames(isUTF16: Bool) throws {
    let path = isUTF16 ? Replacement.utf16Path : .utf8Path
    var bytes = try FileRecord(
      relativePath: path.text, target: Replacement.target.text, digest: [1], mode: 0o120644, protectionClass: .fileNone
    ).archived()
    try path.apply(to: &bytes)
    try Replacement.target.apply(to: &bytes)
    let original = try FileRecord(archive: bytes)
    #expect(original.undecodedPath != nil && original.undecodedTarget == Replacement.target.malformedBytes)
    // Only an edit of the bytes preserves the names: neither the record nor the property list can be written again.
    #expect(throws: FormatError(.fileRecord, .unencodable, "a name in it is not UTF-8")) { try original.archived() }
    #expect(throws: FormatError.self) { try BinaryPlist.decode(bytes) }

    let changed = try FileRecord.replacing(encryptionKey: key, digest: digest, in: bytes)
    var expected = original
    expected.encryptionKey = key
    expected.digest = digest
    #expect(try FileRecord(archive: changed) == expected)
    #expect(Data(changed).range(of: Data(path.malformedBytes)) != nil)

    let withoutKey = try FileRecord.replacing(encryptionKey: nil, digest: nil, in: changed)
    #expect(try FileRecord(archive: withoutKey).undecodedPath == original.undecodedPath)
  }

  @Test("Unknown content of a record is preserved, according to Foundation")
  func unknown() throws {
    let record = FileRecord(relativePath: "a", mode: 0o100644, protectionClass: .fileNone)
    var root = try #require(try BinaryPlist.decode(record.archived()).dictionaryValue)
    var objects = try #require(root["$objects"]?.arrayValue)
    var recordMembers = try #require(objects[1].dictionaryValue)
    recordMembers["ContentEncodingMethod"] = .integer(3)
    objects[1] = .dictionary(recordMembers)
    root["$objects"] = .array(objects)
    let changed = try FileRecord.replacing(
      encryptionKey: key, digest: digest, in: try BinaryPlist.encode(.dictionary(root)))
    let changedPlist = try #require(
      try PropertyListSerialization.propertyList(from: Data(changed), format: nil) as? [String: Any])
    let file = try #require((changedPlist["$objects"] as? [Any])?[1] as? [String: Any])
    #expect(file["ContentEncodingMethod"] as? Int == 3)
    #expect(file["Mode"] as? Int == 0o100644 && file["EncryptionKey"] != nil)
  }

  @Test("Bytes that are not a record are rejected")
  func malformed() throws {
    for plist: PropertyValue in [
      .dictionary([:]), .dictionary(["$objects": .array([]), "$top": .dictionary(["root": .uid(5)])]), .string("x"),
    ] {
      #expect(throws: FormatError.self) {
        try FileRecord.replacing(encryptionKey: key, digest: digest, in: try BinaryPlist.encode(plist))
      }
    }
  }
}
