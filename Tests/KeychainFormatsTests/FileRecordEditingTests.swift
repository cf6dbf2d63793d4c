import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Replacing the key of a file record")
struct FileRecordEditingTests {
  private let key = ClassWrappedKey(keyClass: .fileComplete, wrappedKey: [UInt8](repeating: 7, count: 40))
  private let digest = [UInt8](repeating: 9, count: 20)

  @Test("synthetic_backup: only the key and the digest change, and restoring them gives the original record")
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

  @Test("Names that are not UTF-8 or UTF-16 are preserved byte for byte", arguments: [false, true])
  func undecodedNames(isUTF16: Bool) throws {
    // A record with "name!" and "aim" in it, which are replaced with malformed text: the byte F5 and an unpaired
    // surrogate.
    let placeholder = isUTF16 ? "n\u{E000}me!" : "name!"
    let record = FileRecord(
      relativePath: placeholder, target: "aim", digest: [1], mode: 0o120644, protectionClass: .fileNone)
    func undecoded(_ bytes: [UInt8], _ pairs: [([UInt8], [UInt8])]) throws -> [UInt8] {
      var bytes = bytes
      for (old, new) in pairs {
        let range = try #require(Data(bytes).range(of: Data(old)))
        bytes.replaceSubrange(range, with: new)
      }
      return bytes
    }
    let name: [UInt8] = isUTF16 ? [0xD8, 0x00, 0, 0x6D] : [0x6E, 0xF5, 0xBA, 0x65, 0x21]
    let pairs: [([UInt8], [UInt8])] = [
      (isUTF16 ? [0xE0, 0x00, 0, 0x6D] : Array("name!".utf8), name), (Array("aim".utf8), [0x61, 0xFF, 0x6D]),
    ]
    let bytes = try undecoded(record.archived(), pairs)
    let before = try FileRecord(archive: bytes)
    #expect(before.undecodedPath != nil && before.undecodedTarget == [0x61, 0xFF, 0x6D])
    // A record that is created from its fields would have another name.
    #expect(throws: FormatError(.fileRecord, .unencodable, "a name in it is not UTF-8")) { try before.archived() }
    #expect(throws: FormatError.self) { try BinaryPlist.decode(bytes) }
    let changed = try FileRecord.replacing(encryptionKey: key, digest: digest, in: bytes)
    var expected = before
    (expected.encryptionKey, expected.digest) = (key, digest)
    #expect(try FileRecord(archive: changed) == expected)
    #expect(Data(changed).range(of: Data(name)) != nil)
    let withoutKey = try FileRecord.replacing(encryptionKey: nil, digest: nil, in: changed)
    #expect(try FileRecord(archive: withoutKey).undecodedPath == before.undecodedPath)
  }

  @Test("Unknown content of a record is preserved, according to Foundation")
  func unknown() throws {
    let first = FileRecord(relativePath: "a", mode: 0o100644, protectionClass: .fileNone)
    var root = try #require(try BinaryPlist.decode(first.archived()).dictionaryValue)
    var objects = try #require(root["$objects"]?.arrayValue)
    var record = try #require(objects[1].dictionaryValue)
    record["ContentEncodingMethod"] = .integer(3)
    objects[1] = .dictionary(record)
    root["$objects"] = .array(objects)
    let changed = try FileRecord.replacing(
      encryptionKey: key, digest: digest, in: try BinaryPlist.encode(.dictionary(root)))
    let read = try #require(
      try PropertyListSerialization.propertyList(from: Data(changed), format: nil) as? [String: Any])
    let file = try #require((read["$objects"] as? [Any])?[1] as? [String: Any])
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
