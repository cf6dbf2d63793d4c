import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Manifests of iOS 4 to 9")
struct MBDBManifestTests {
  // A record has a domain, path, target, digest, wrapped key, mode, inode, user, group, three times (last modification,
  // last status change, birth), a size, a protection class and the number of attributes. The name and value of each
  // attribute follow. Text and data begin with their length in two bytes; ffff means that the field is missing.

  /// The root directory of a domain: an empty path, no target, no digest, no key.
  private static let root =
    "0004 486f6d65 0000 ffff ffff ffff 41ed 0000000000000007 000001f5 000001f6"
    + " 53724e00 53724e01 ffffffff 0000000000000000 04 00"
  /// A file with a digest, a key and one attribute.
  private static let file =
    "0004 486f6d65 0003 612f62 ffff 0014 000102030405060708090a0b0c0d0e0f10111213"
    + " 002c 04000000 " + String(repeating: "ab", count: 40)
    + " 81a4 ffffffffffffffff 000001f5 000001f5 00000000 80000000 7fffffff 0000000100000000 03 01"
    + " 0003 6e616d 0002 0102"
  private static let header = "6d626462 0500"

  private static func bytes(_ parts: String...) throws -> [UInt8] {
    try [UInt8](hex: parts.joined().replacing(" ", with: ""))
  }

  private func entries(_ bytes: [UInt8]) throws(FormatError) -> [MBDBManifest.Entry] {
    var cursor = try MBDBManifest(bytes).entries()
    var entries: [MBDBManifest.Entry] = []
    while let entry = try cursor.next() { entries.append(entry) }
    return entries
  }

  @Test("Every field of a record is read")
  func fields() throws {
    let entries = try entries(try Self.bytes(Self.header, Self.root, Self.file))
    #expect(entries.count == 2)
    #expect(entries[0].domain == "Home")
    #expect(entries[0].record.relativePath == "")
    #expect(entries[0].record.fileType == .directory)
    #expect(entries[0].record.birth == -1)
    let record = entries[1].record
    #expect(record.relativePath == "a/b")
    #expect(record.target == nil)
    #expect(record.digest?.hex == "000102030405060708090a0b0c0d0e0f10111213")
    #expect(record.encryptionKey?.keyClass == .fileNone)
    #expect(record.mode == 0o100644)
    #expect(record.inode == .max)
    #expect(record.lastStatusChange == -2_147_483_648)
    #expect(record.size == 1 << 32)
    #expect(record.protectionClass.rawValue == 3)
    #expect(entries[1].extendedAttributes == [.init(name: "nam", value: [1, 2])])
  }

  @Test("A name that is not UTF-8 is escaped with its bytes available, and the next record is read")
  func undecodedNames() throws {
    let undecoded =
      "0002 48ff 0003 61f562 0001 ba ffff ffff a1ff 0000000000000007 000001f5 000001f6"
      + " 53724e00 53724e01 ffffffff 0000000000000000 04 01 0003 6ef525 0001 07"
    let entries = try entries(try Self.bytes(Self.header, undecoded, Self.root))
    #expect(entries.count == 2 && entries[0].hasUndecodedNames && !entries[1].hasUndecodedNames)
    let entry = entries[0]
    let record = entry.record
    #expect(entry.domain == "H%FF" && entry.undecodedDomain == [0x48, 0xFF])
    #expect(record.relativePath == "a%F5b" && record.undecodedPath == [0x61, 0xF5, 0x62])
    #expect(record.target == "%BA" && record.undecodedTarget == [0xBA])
    #expect(entry.extendedAttributes.map(\.name) == ["n%F5%25"])
    #expect(entry.extendedAttributes[0].undecodedName == [0x6E, 0xF5, 0x25])
    #expect(entries[1].domain == "Home" && entries[1].undecodedDomain == nil)
  }

  @Test("A keyed record with malformed text is read, with the text escaped")
  func undecodedRecord() throws {
    let record = FileRecord(relativePath: "pathQ", target: "\u{E9}\u{5151}", mode: 0o120777, protectionClass: .fileNone)
    var bytes = try record.archived()
    let lastLetter = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("pathQ".utf8)) }) + 4
    bytes[lastLetter] = 0xF5
    let surrogate = try #require(bytes.indices.first { bytes[$0...].starts(with: [0x00, 0xE9, 0x51, 0x51]) }) + 2
    bytes[surrogate] = 0xD8
    let damagedRecord = try FileRecord(archive: bytes)
    #expect(damagedRecord.relativePath == "path%F5" && damagedRecord.undecodedPath == Array("path".utf8) + [0xF5])
    // U+D851 encoded like UTF-8.
    #expect(
      damagedRecord.target == "\u{E9}%ED%A1%91" && damagedRecord.undecodedTarget == [0xC3, 0xA9, 0xED, 0xA1, 0x91])
  }

  @Test("A manifest with a wrong header is rejected")
  func header() throws {
    #expect(try entries(try Self.bytes(Self.header)).isEmpty)
    FaultyInput("nothing", [], .malformed, at: 0).check(.oldManifest, entries)
    try FaultyInput("another magic", hex: "6d6264610500", .malformed, at: 0).check(.oldManifest, entries)
    try FaultyInput("half a header", hex: "6d62646205", .truncated, at: 0).check(.oldManifest, entries)
    try FaultyInput("another version", hex: "6d6264620600", .unsupportedVersion, at: 4).check(.oldManifest, entries)
  }

  @Test("A damaged manifest is reported with the offset of the wrong field")
  func faults() throws {
    func check(_ name: String, _ code: FormatError.Code, at offset: Int, _ parts: String...) throws {
      let hex = ([Self.header] + parts).joined().replacing(" ", with: "")
      try FaultyInput(name, hex: hex, code, at: offset).check(.oldManifest, entries)
    }
    try check("a text past the end", .truncated, at: 8, "0005 486f6d65")
    try check("no path", .malformed, at: 12, "0004 486f6d65 ffff")
    try check("a digest of one byte", .malformed, at: 16, "0004 486f6d65 0000 ffff 0001 00")
    try check("a key of one byte", .malformed, at: 18, "0004 486f6d65 0000 ffff ffff 0001 00")
    let negative = Self.root.replacing("ffffffff 0000000000000000", with: "ffffffff 8000000000000000")
    try check("a negative size", .malformed, at: 50, negative)
    try check("a missing attribute", .truncated, at: 60, String(Self.root.dropLast(2)) + "01")
  }

  @Test("Truncating a manifest or flipping any of its bits gives an error or records, and never a crash")
  func damage() throws {
    readDamagedVariants(of: try Self.bytes(Self.header, Self.root, Self.file)) { _ = try? entries($0) }
  }
}
