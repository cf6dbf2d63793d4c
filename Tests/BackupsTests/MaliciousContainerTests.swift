import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

/// A malicious name or type of an entry in a container with a complete backup.
struct MaliciousEntry: Sendable, CustomTestStringConvertible {
  let testDescription: String
  var name: [UInt8] = Array("x".utf8)
  var code = KeyhaulError.Code.hostile
  /// A part of the expected reason.
  var reason = ""
  /// The type in a tar. In a zip, the mode is used.
  var type: Character = "0"
  var link = ""
  var mode = 0o100600
  var content: [UInt8] = [1, 2, 3]

  /// Creates a regular file with a malicious name.
  init(_ name: String, _ reason: String) {
    testDescription = "a name such as \(name.debugDescription.prefix(40))"
    self.name = Array(name.utf8)
    self.reason = reason
  }

  /// Creates an entry named "x" of another type.
  init(_ description: String, type: Character, link: String = "", mode: Int, reason: String) {
    testDescription = description
    self.type = type
    self.link = link
    self.mode = mode
    self.reason = reason
    content = []
  }
}

@Suite("Containers that no device creates")
struct MaliciousContainerTests {
  static let names = [
    MaliciousEntry("../../.ssh/authorized_keys", "\"../../.ssh/authorized_keys\""),
    MaliciousEntry("..", "a part"),
    MaliciousEntry("\(SampleBackup.udid)/../../x", "a part"),
    MaliciousEntry("a/../../b", "a part"),
    MaliciousEntry("a/./b", "a part"),
    // The combining characters after the slashes do not hide them.
    MaliciousEntry("../\u{338}x", "a part"),
    MaliciousEntry("/\u{301}etc/cron.d/x", "absolute"),
    MaliciousEntry("./../x", "a part"),
    MaliciousEntry("/etc/cron.d/x", "absolute"),
    MaliciousEntry("//server/share", "absolute"),
    MaliciousEntry("a\\..\\b", "backslash"),
    MaliciousEntry("..\\x", "backslash"),
    MaliciousEntry("C:x", "drive letter"),
    MaliciousEntry("c:/windows/x", "drive letter"),
    MaliciousEntry("a//b", "empty part"),
    MaliciousEntry("a/b.", "dot or a space"),
    MaliciousEntry("a/b ", "dot or a space"),
    MaliciousEntry("a./b", "dot or a space"),
    MaliciousEntry("Manifest.plist ", "dot or a space"),
    MaliciousEntry("manifest.PLIST", "only in case"),
    MaliciousEntry("Manifest.plist", "used before"),
    MaliciousEntry("51/\(KeychainPayload.fileIdentifier.uppercased())", "only in case"),
  ]

  static let links = [
    MaliciousEntry("a symbolic link out", type: "2", link: "/etc/passwd", mode: 0o120777, reason: "a symbolic link"),
    MaliciousEntry(
      "a symbolic link within", type: "2", link: "Manifest.plist", mode: 0o120777, reason: "a symbolic link"),
    MaliciousEntry("a pipe", type: "6", mode: 0o010600, reason: "a pipe"),
    MaliciousEntry("a character device", type: "3", mode: 0o020600, reason: "a device"),
    MaliciousEntry("a block device", type: "4", mode: 0o060600, reason: "a device"),
  ]

  /// Opens a container in a directory with other files, and checks the error and that the files are unchanged.
  private func expectRefusal(_ bytes: [UInt8], _ code: KeyhaulError.Code, _ reason: String) throws {
    let victim = try TemporaryDirectory()
    try victim.write(Array("precious".utf8), to: ".ssh/authorized_keys")
    try victim.write(bytes, to: "below/here/archive")
    let treeBefore = try tree(victim.path)
    var error: KeyhaulError?
    do {
      _ = try BackupArchive.open(.path(victim.path("below/here/archive")))
    } catch let thrown {
      error = thrown
    }
    #expect(error?.code == code)
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "no error")")
    #expect(try tree(victim.path) == treeBefore)
  }

  private func tar(_ sample: borrowing SampleBackup, _ entry: MaliciousEntry) throws -> [UInt8] {
    var tar = TarFixture()
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    tar.add(nameBytes: entry.name, entry.content, type: entry.type, link: entry.link)
    return tar.finished()
  }

  @Test("A tar with a malicious entry is refused, and the disk is unchanged", arguments: names + links)
  func tarEntry(_ entry: MaliciousEntry) throws {
    let sample = try SampleBackup()
    try expectRefusal(try tar(sample, entry), entry.code, entry.reason)
  }

  @Test("A zip with a malicious entry is refused, and the disk is unchanged", arguments: names + links)
  func zipEntry(_ entry: MaliciousEntry) throws {
    var zip = try zip(try SampleBackup())
    zip.add(nameBytes: entry.name, entry.content, mode: entry.mode)
    try expectRefusal(zip.finished(), entry.code, entry.reason)
  }

  @Test("A tar with a hard link is refused", arguments: ["/etc/passwd", "Manifest.plist", "../x"])
  func hardLinks(target: String) throws {
    let sample = try SampleBackup()
    var entry = MaliciousEntry("a hard link", type: "1", link: target, mode: 0, reason: "a hard link")
    entry.name = Array("Status2.plist".utf8)
    try expectRefusal(try tar(sample, entry), .hostile, "a hard link")
  }

  @Test("A tar with an entry below a link is refused")
  func writeThroughLink() throws {
    let sample = try SampleBackup()
    var tar = TarFixture()
    tar.add("51", type: "2", link: "../../.ssh")
    tar.add("51/authorized_keys", Array("mine".utf8))
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    try expectRefusal(tar.finished(), .hostile, "entry 1 is named \"51\"; it is a symbolic link")
  }

  @Test("A container with names that differ only in their Unicode normalization is refused")
  func unicodeNormalizations() throws {
    var tar = TarFixture()
    tar.addExtended([("path", Array("caf\u{E9}".utf8))])
    tar.add("x", [1])
    tar.addExtended([("path", Array("cafe\u{301}".utf8))])
    tar.add("x", [1])
    try expectRefusal(tar.finished(), .hostile, "Unicode form")
  }

  @Test(
    "A container with a non-UTF-8 name is refused, and the name is displayed with escapes",
    arguments: [
      ([0xFF, 0xFE, 0x41], "\\xFF\\xFEA"), ([0xC3], "\\xC3"), ([0xED, 0xA0, 0x80], "\\xED\\xA0\\x80"),
      ([0xC3, 0xA9, 0xE9], "\u{E9}\\xE9"),
    ] as [([UInt8], String)])
  func namesThatAreNotText(name: [UInt8], displayed: String) throws {
    var tar = TarFixture()
    tar.add(nameBytes: name + Array("/../x".utf8), [1])
    try expectRefusal(tar.finished(), .hostile, "entry 1 is named \"\(displayed)/../x\"; a part of its name is \"..\"")
  }

  @Test("A tar with a link to a non-ASCII name is refused", arguments: ["1", "2"])
  func linksBeyondASCII(type: String) throws {
    let sample = try SampleBackup()
    var tar = TarFixture()
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    tar.addExtended([("linkpath", Array("Gr\u{F6}\u{DF}e".utf8))])
    tar.add("Status2.plist", type: Character(type), link: "x")
    try expectRefusal(tar.finished(), .hostile, type == "1" ? "a hard link" : "a symbolic link")
  }

  @Test("A zip with NUL in a name is refused")
  func nulInName() throws {
    var zip = ZipFixture()
    zip.add(nameBytes: Array("Manifest.plist\u{0}.jpg".utf8), [1])
    try expectRefusal(zip.finished(), .hostile, "\\u{0}")
  }

  private func zip(_ sample: borrowing SampleBackup) throws -> ZipFixture {
    var zip = ZipFixture()
    for file in try sample.storedFiles() { zip.add(file.path, file.bytes) }
    return zip
  }

  @Test("A zip with 64-bit numbers is read")
  func zip64() throws {
    let sample = try SampleBackup()
    let keychain = try open(try zip(sample).finishedAsZip64()).keychainFile(with: sample.keys)
    #expect(try keychain.bytes == sample.contents.keychainFile)
  }

  @Test("The numbers in a zip's two end records must be equal, or missing in the last record")
  func endRecordsOfZip64() throws {
    let zip = try zip(try SampleBackup())
    let absent = -1
    let (count, size, offset) = zip.endRecord
    for endRecord in [
      zip.endRecord, (count, absent, absent), (absent, size, absent), (absent, absent, offset),
    ] {
      #expect(throws: Never.self) { try open(zip.finishedAsZip64(endRecord: endRecord)) }
    }
    for endRecord in [
      (count + 1, absent, absent), (absent, size + 1, absent), (absent, absent, offset + 1),
      (count, size, offset - 1),
    ] {
      try expectRefusal(zip.finishedAsZip64(endRecord: endRecord), .damaged, "two end records do not agree")
    }
  }

  @Test("A zip with exactly 65,535 entries needs no 64-bit numbers")
  func fullEndRecord() throws {
    let sample = try SampleBackup()
    var zip = try zip(sample)
    while zip.endRecord.count < 65_535 { zip.add("Other/\(zip.endRecord.count)") }
    #expect(try open(zip.finished()).hasKeychain)
  }

  @Test("A zip is refused if its 64-bit record is not directly before the locator, where some readers look for it")
  func misplacedZip64Record() throws {
    let zip = try zip(SampleBackup())
    let secondRecord = zip.finishedAsZip64().suffix(98).prefix(56)
    try expectRefusal(zip.finishedAsZip64(beforeLocator: Array(secondRecord)), .damaged, "directly before its locator")
    try expectRefusal(zip.finishedAsZip64(beforeLocator: [0]), .damaged, "directly before its locator")
  }

  @Test("A zip with 64-bit numbers is refused if a name has a NUL, or if its directory is outside of the file")
  func maliciousZip64() throws {
    var zip = try zip(try SampleBackup())
    zip.add(nameBytes: Array("a\u{0}b".utf8), [1])
    try expectRefusal(zip.finishedAsZip64(), .hostile, "\\u{0}")
    try expectRefusal(zip.finishedAsZip64(directoryAt: 1 << 50), .damaged, "lies outside the file")
    try expectRefusal(zip.finishedAsZip64(directoryAt: -1), .damaged, "lies outside the file")
  }

  @Test("A zip with a wrong checksum is refused")
  func wrongChecksum() throws {
    var bytes = try zip(try SampleBackup()).finished()
    // The content of the first file follows a header of 30 bytes and its name.
    bytes[30 + "Manifest.plist".utf8.count + 16] ^= 1
    let error = try #require(try failure(opening: bytes))
    #expect(error.code == .damaged)
    #expect(error.reason.contains("CRC"))
  }

  @Test("A zip without the directory at its end is refused")
  func withoutDirectory() throws {
    let bytes = try zip(try SampleBackup()).withoutDirectory()
    try expectRefusal(bytes, .truncated, "the directory at the end of the zip is missing")
  }

  @Test("A zip from a pipe is refused, because its directory is at the end")
  func zipThroughAPipe() throws {
    let pipe = Pipe()
    try pipe.fileHandleForWriting.write(contentsOf: Data(ZipFixture().finished() + [UInt8](repeating: 0, count: 600)))
    try pipe.fileHandleForWriting.close()
    let error = #expect(throws: KeyhaulError.self) {
      try BackupArchive.open(.stream(descriptor: pipe.fileHandleForReading.fileDescriptor))
    }
    #expect(error?.code == .notStreamable)
  }

  @Test("A container with a name of 4,096 bytes is refused")
  func overlongName() throws {
    var tar = TarFixture()
    tar.addExtended([("path", Array(String(repeating: "a", count: 4096).utf8))])
    tar.add("x", [1])
    try expectRefusal(tar.finished(), .hostile, "4096 bytes")
  }

  @Test("A container with control characters in names is refused, and the names are displayed with escapes")
  func escapedNames() throws {
    var tar = TarFixture()
    tar.add("\u{1B}[2J\u{202E}..\\x", [1])
    try expectRefusal(tar.finished(), .hostile, "\"\\u{1B}[2J\\u{202E}..\\\\x\"")
  }

  @Test("A zip with a file whose name ends with a slash is refused")
  func fileNamedLikeADirectory() throws {
    var zip = ZipFixture()
    zip.add("a/", [1, 2], mode: 0o100600)
    let error = try #require(try failure(opening: zip.finished()))
    #expect([.hostile, .notABackup].contains(error.code))
  }

  @Test("A zip with an encrypted entry is refused")
  func encryptedZip() throws {
    var zip = ZipFixture()
    zip.add(nameBytes: Array("Manifest.plist".utf8), [1, 2, 3], flags: 1)
    try expectRefusal(zip.finished(), .hostile, "encrypted by the container")
  }

  @Test("A container with two backups is refused")
  func twoBackups() throws {
    let sample = try SampleBackup()
    var tar = TarFixture()
    for directory in ["first", "second"] {
      for file in try sample.storedFiles() { tar.add("\(directory)/\(file.path)", file.bytes) }
    }
    try expectRefusal(tar.finished(), .unsupported, "2 backups")
  }

  @Test("A container of a hundred bytes that claims four gigabytes is refused")
  func hugeClaim() throws {
    var tar = TarFixture()
    tar.add("Manifest.plist", [1, 2, 3], size: 1 << 32)
    try expectRefusal(tar.finished(), .overLimit, "4,294,967,296 bytes")
    var zip = ZipFixture()
    zip.add("Manifest.plist", [1, 2, 3], claimed: 0xFFFF_FFF0)
    try expectRefusal(zip.finished(), .overLimit, "4,294,967,280 bytes")
  }

  @Test("A container with a wrong size is refused")
  func wrongSize() throws {
    for claimed in [2, 4] {
      var zip = ZipFixture()
      zip.add("Manifest.plist", [1, 2, 3], claimed: claimed)
      let error = try #require(try failure(opening: zip.finished()))
      #expect(error.category == .damaged)
    }
  }

  @Test("Files that are not backups are refused as such, and not as malicious")
  func notBackups() throws {
    var tar = TarFixture()
    tar.add("photo.jpg", [1, 2, 3])
    try expectRefusal(tar.finished(), .notABackup, "no Manifest.plist")
    var zip = ZipFixture()
    zip.add("photo.jpg", [1, 2, 3])
    try expectRefusal(zip.finished(), .notABackup, "no Manifest.plist")
    try expectRefusal(TarFixture().finished(), .notABackup, "no Manifest.plist")
    try expectRefusal(ZipFixture().finished(), .notABackup, "no Manifest.plist")
    try expectRefusal([], .notABackup, "empty")
    let otherFormat = "it is not a folder, a tar file or a zip file"
    try expectRefusal([UInt8](repeating: UInt8(ascii: "A"), count: 4096), .notABackup, otherFormat)
    let json = Array("{\"a\": 1}".utf8) + [UInt8](repeating: UInt8(ascii: " "), count: 600)
    try expectRefusal(json, .notABackup, otherFormat)
  }
}
