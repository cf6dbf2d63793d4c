import Backups
import Basics
import Foundation
import TestSupport
import Testing

/// A zip entry whose local header may differ from its header in the central directory.
private struct HeaderCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  var name = "Manifest.plist"
  var flags = 0
  var content: [UInt8] = [1, 2, 3]
  /// Returns the extra fields in the central directory.
  var extra: @Sendable (ZipFixture) -> [UInt8] = { _ in [] }
  /// Returns the differences in the local header.
  var local: @Sendable (ZipFixture) -> ZipFixture.Local = { _ in ZipFixture.Local() }
  /// The code of the expected error, or `nil` if the headers must be accepted.
  var code: KeyhaulError.Code?
  /// A part of the expected reason.
  var reason = ""

  var zip: [UInt8] {
    var zip = ZipFixture()
    zip.add(
      nameBytes: Array(name.utf8), content, flags: flags, extra: extra(zip), local: local(zip))
    return zip.finished()
  }
}

/// Source: PKWARE APPNOTE 4.3.7, 4.3.12, 4.4.4, 4.6.9, according to which the local header of an entry equals its
/// header in the central directory.
@Suite("Zip entry headers")
struct ZipHeaderTests {
  private static let rejected: [HeaderCase] = [
    .init(
      testDescription: "another name", local: { _ in .init(name: Array("Manifest.bak".utf8)) }, code: .hostile,
      reason: "\"Manifest.plist\" in the zip's directory and \"Manifest.bak\" in its local header"),
    .init(
      testDescription: "a name in capitals", local: { _ in .init(name: Array("MANIFEST.plist".utf8)) }, code: .hostile,
      reason: "in its local header"),
    .init(
      testDescription: "no name", local: { _ in .init(name: []) }, code: .hostile, reason: "in its local header"),
    .init(
      testDescription: "a longer name", local: { _ in .init(name: Array("Manifest.plist/x".utf8)) }, code: .hostile,
      reason: "in its local header"),
    .init(
      testDescription: "the composed form of a name", name: "e\u{301}",
      local: { _ in .init(name: Array("\u{e9}".utf8)) },
      code: .hostile, reason: "in its local header"),
    .init(
      testDescription: "a Unicode path with another name, only in the local header", name: "x.jpg",
      local: { .init(extra: $0.unicodePath("Manifest.plist", replacing: "x.jpg")) }, code: .hostile,
      reason: "\"Manifest.plist\" in its Unicode path"),
    .init(
      testDescription: "a Unicode path with another name, only in the central directory", name: "x.jpg",
      extra: { $0.unicodePath("Manifest.plist", replacing: "x.jpg") }, code: .hostile,
      reason: "\"Manifest.plist\" in its Unicode path"),
    .init(
      testDescription: "a Unicode path with another name, in both headers", name: "x.jpg",
      extra: { $0.unicodePath("Manifest.plist", replacing: "x.jpg") },
      local: { .init(extra: $0.unicodePath("Manifest.plist", replacing: "x.jpg")) }, code: .hostile,
      reason: "\"Manifest.plist\" in its Unicode path"),
    .init(
      testDescription: "a Unicode path whose checksum is of another name", name: "x.jpg",
      local: { .init(extra: $0.unicodePath("Manifest.plist", replacing: "y.jpg")) }, code: .hostile,
      reason: "\"Manifest.plist\" in its Unicode path"),
    .init(
      testDescription: "two Unicode paths that differ", name: "\u{f6}",
      extra: { $0.unicodePath("\u{e4}", replacing: "\u{f6}") },
      local: { .init(extra: $0.unicodePath("\u{e9}", replacing: "\u{f6}")) }, code: .hostile,
      reason: "in its Unicode path"),
    .init(
      testDescription: "another size", local: { _ in .init(size: 2) }, code: .damaged, reason: "different sizes"),
    .init(
      testDescription: "no size, without the flag for a data descriptor", local: { _ in .init(size: 0) },
      code: .damaged, reason: "different sizes"),
    .init(
      testDescription: "another compressed size", local: { _ in .init(compressedSize: 2) }, code: .damaged,
      reason: "different compressed sizes"),
    .init(
      testDescription: "another checksum", local: { _ in .init(checksum: 7) }, code: .damaged,
      reason: "different checksums"),
    .init(
      testDescription: "another compression method", local: { _ in .init(method: 8) }, code: .damaged,
      reason: "different compressions"),
    // A size of -1, which is written as 0xFFFFFFFF, refers to the Zip64 field.
    .init(
      testDescription: "another size in the Zip64 field",
      local: { .init(compressedSize: -1, size: -1, extra: $0.zip64Field(4, 3)) }, code: .damaged,
      reason: "different sizes"),
    .init(
      testDescription: "a wrong size, with the flag for a data descriptor", flags: 8, local: { _ in .init(size: 2) },
      code: .damaged, reason: "different sizes"),
  ]

  private static let accepted: [HeaderCase] = [
    .init(testDescription: "the same fields"),
    .init(
      testDescription: "zeros, with the flag for a data descriptor", flags: 8,
      local: { _ in .init(checksum: 0, compressedSize: 0, size: 0) }),
    .init(
      testDescription: "its sizes in the Zip64 field",
      local: { .init(compressedSize: -1, size: -1, extra: $0.zip64Field(3, 3)) }),
    .init(
      testDescription: "a Unicode path with the same name",
      extra: { $0.unicodePath("Manifest.plist", replacing: "Manifest.plist") },
      local: { .init(extra: $0.unicodePath("Manifest.plist", replacing: "Manifest.plist")) }),
    .init(
      testDescription: "a long extra field of an unknown type",
      local: { _ in .init(extra: [0xFE, 0xCA, 0x58, 0x02] + [UInt8](repeating: 0, count: 600)) }),
  ]

  @Test("A zip is rejected if an entry's local header and the central directory differ", arguments: rejected)
  private func mismatchedHeaders(_ entry: HeaderCase) throws {
    let error = try #require(try failure(opening: entry.zip))
    #expect(error.code == entry.code)
    #expect(error.reason.contains(entry.reason), "\(error.reason)")
  }

  @Test("A zip is accepted if its entry's local header and the central directory agree", arguments: accepted)
  private func matchingHeaders(_ entry: HeaderCase) throws {
    // The headers are accepted, but the entry's content is not a property list.
    let error = try #require(try failure(opening: entry.zip))
    #expect(![.hostile, .truncated].contains(error.code))
    #expect(!error.reason.contains("in its local header"), "\(error.reason)")
  }

  @Test("A zip is accepted if a name is Unicode in the extra field and in another character set in both headers")
  func otherCharacterSet() throws {
    let sample = try SampleBackup()
    var zip = ZipFixture()
    for file in try sample.storedFiles() {
      // 0x94 is "\u{f6}" in the character set of old DOS systems.
      let header = [0x94] + Array("/\(file.path)".utf8)
      // The checksum in the field does not match the name in the header. The names are compared nevertheless.
      let field = zip.unicodePath("\u{f6}/\(file.path)", replacing: "")
      zip.add(nameBytes: header, file.bytes, extra: field, local: .init(extra: field))
    }
    let error = try failure(opening: zip.finished())
    #expect(error?.reason.contains("Unicode path") != true, "\(error?.reason ?? "")")
  }

  @Test("A zip is rejected if an entry has no local header")
  func missingLocalHeader() throws {
    var zip = ZipFixture()
    zip.add("Manifest.plist", [1, 2, 3])
    zip.add("Status.plist", [4, 5, 6])
    var bytes = zip.finished()
    // The first entry has a local header of 30 bytes, a name, and 3 bytes of content.
    let secondHeader = 30 + "Manifest.plist".utf8.count + 3
    let lastByteOfSignature = secondHeader + 3
    bytes[lastByteOfSignature] = 5
    let error = try #require(try failure(opening: bytes))
    #expect(error.code == .damaged)
    #expect(error.reason == "entry 2 has no local header")
  }

  @Test("A zip whose entries share one long local header is rejected")
  func sharedHeader() throws {
    var zip = ZipFixture()
    zip.add(nameBytes: Array("Manifest.plist".utf8), [1], local: .init(extra: [UInt8](repeating: 0, count: 60_000)))
    zip.listAgain(times: 2)
    let directory = try TemporaryDirectory()
    try directory.write(zip.finished(), to: "b.zip")
    let error = #expect(throws: KeyhaulError.self) { try BackupArchive.open(.path(directory.path("b.zip"))) }
    #expect(
      error?.code == .hostile && error?.reason.contains("share a local header") == true, "\(String(describing: error))")
  }

  @Test("A zip with a second central directory before its end record is rejected")
  func secondDirectory() throws {
    var (zip, otherZip) = (ZipFixture(), ZipFixture())
    zip.add("Manifest.plist", [1, 2, 3])
    otherZip.add("Manifest.bak.x", [1, 2, 3])
    let error = try #require(try failure(opening: zip.finished(before: otherZip)))
    #expect(error.code == .damaged)
    #expect(error.reason == "the zip's directory does not end where its end record begins")
  }
}
