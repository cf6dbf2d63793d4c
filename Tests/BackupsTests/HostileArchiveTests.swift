import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

/// A name or a kind of entry that a hostile container holds beside a whole backup.
struct HostileEntry: Sendable, CustomTestStringConvertible {
  let testDescription: String
  var name: [UInt8] = Array("x".utf8)
  var code = KeyhaulError.Code.hostile
  /// Part of the reason that has to be given.
  var reason = ""
  /// What a tar calls the kind; zips have modes instead.
  var type: Character = "0"
  var link = ""
  var mode = 0o100600
  var content: [UInt8] = [1, 2, 3]

  init(_ name: String, _ reason: String) {
    testDescription = "a name such as \(name.debugDescription.prefix(40))"
    self.name = Array(name.utf8)
    self.reason = reason
  }

  init(_ description: String, type: Character, link: String = "", mode: Int, reason: String) {
    testDescription = description
    self.type = type
    self.link = link
    self.mode = mode
    self.reason = reason
    content = []
  }
}

@Suite("A container that no device makes")
struct HostileArchiveTests {
  static let names = [
    HostileEntry("../../.ssh/authorized_keys", "\"../../.ssh/authorized_keys\""),
    HostileEntry("..", "a part"),
    HostileEntry("\(SampleBackup.udid)/../../x", "a part"),
    HostileEntry("a/../../b", "a part"),
    HostileEntry("a/./b", "a part"),
    // A letter of these has an accent behind it, and is a slash all the same.
    HostileEntry("../\u{338}x", "a part"),
    HostileEntry("/\u{301}etc/cron.d/x", "absolute"),
    HostileEntry("./../x", "a part"),
    HostileEntry("/etc/cron.d/x", "absolute"),
    HostileEntry("//server/share", "absolute"),
    HostileEntry("a\\..\\b", "backslash"),
    HostileEntry("..\\x", "backslash"),
    HostileEntry("C:x", "drive letter"),
    HostileEntry("c:/windows/x", "drive letter"),
    HostileEntry("a//b", "empty part"),
    HostileEntry("a/b.", "dot or a space"),
    HostileEntry("a/b ", "dot or a space"),
    HostileEntry("a./b", "dot or a space"),
    HostileEntry("Manifest.plist ", "dot or a space"),
    HostileEntry("manifest.PLIST", "only in case"),
    HostileEntry("Manifest.plist", "used before"),
    HostileEntry("51/\(KeychainPayload.fileIdentifier.uppercased())", "only in case"),
  ]

  static let links = [
    HostileEntry("a symbolic link out", type: "2", link: "/etc/passwd", mode: 0o120777, reason: "a symbolic link"),
    HostileEntry(
      "a symbolic link within", type: "2", link: "Manifest.plist", mode: 0o120777, reason: "a symbolic link"),
    HostileEntry("a pipe", type: "6", mode: 0o010600, reason: "a pipe"),
    HostileEntry("a character device", type: "3", mode: 0o020600, reason: "a device"),
    HostileEntry("a block device", type: "4", mode: 0o060600, reason: "a device"),
  ]

  /// Opens the container where a victim's files lie around it, and looks whether they are as before.
  private func expectRefusal(_ bytes: [UInt8], _ code: KeyhaulError.Code, _ reason: String) throws {
    let victim = try TemporaryDirectory()
    try victim.write(Array("precious".utf8), to: ".ssh/authorized_keys")
    try victim.write(bytes, to: "below/here/archive")
    let before = try tree(victim.path)
    var error: KeyhaulError?
    do {
      _ = try BackupArchive.open(.path(victim.path("below/here/archive")))
    } catch let found {
      error = found
    }
    #expect(error?.code == code)
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "no error")")
    #expect(try tree(victim.path) == before)
  }

  private func tar(_ sample: borrowing SampleBackup, _ entry: HostileEntry) throws -> [UInt8] {
    var tar = TinyTar()
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    tar.add(nameBytes: entry.name, entry.content, type: entry.type, link: entry.link)
    return tar.finished()
  }

  @Test("is refused as a tar, and nothing changes on disk", arguments: names + links)
  func tarEntry(_ entry: HostileEntry) throws {
    let sample = try SampleBackup()
    try expectRefusal(try tar(sample, entry), entry.code, entry.reason)
  }

  @Test("is refused as a zip, and nothing changes on disk", arguments: names + links)
  func zipEntry(_ entry: HostileEntry) throws {
    let sample = try SampleBackup()
    var zip = TinyZip()
    for file in try sample.storedFiles() { zip.add(file.path, file.bytes) }
    zip.add(nameBytes: entry.name, entry.content, mode: entry.mode)
    try expectRefusal(zip.finished(), entry.code, entry.reason)
  }

  @Test("with a hard link, inside or outside of the archive", arguments: ["/etc/passwd", "Manifest.plist", "../x"])
  func hardLinks(target: String) throws {
    let sample = try SampleBackup()
    var entry = HostileEntry("a hard link", type: "1", link: target, mode: 0, reason: "a hard link")
    entry.name = Array("Status2.plist".utf8)
    try expectRefusal(try tar(sample, entry), .hostile, "a hard link")
  }

  @Test("whose link is followed by an entry that would be written through it")
  func writeThroughLink() throws {
    let sample = try SampleBackup()
    var tar = TinyTar()
    tar.add("51", type: "2", link: "../../.ssh")
    tar.add("51/authorized_keys", Array("mine".utf8))
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    try expectRefusal(tar.finished(), .hostile, "entry 1 is named \"51\"; it is a symbolic link")
  }

  @Test("with two names that differ only in their Unicode form")
  func unicodeForms() throws {
    var tar = TinyTar()
    tar.addExtended([("path", Array("caf\u{E9}".utf8))])
    tar.add("x", [1])
    tar.addExtended([("path", Array("cafe\u{301}".utf8))])
    tar.add("x", [1])
    try expectRefusal(tar.finished(), .hostile, "Unicode form")
  }

  @Test(
    "with a name that is not text, which is shown escaped",
    arguments: [
      ([0xFF, 0xFE, 0x41], "\\xFF\\xFEA"), ([0xC3], "\\xC3"), ([0xED, 0xA0, 0x80], "\\xED\\xA0\\x80"),
      ([0xC3, 0xA9, 0xE9], "\u{E9}\\xE9"),
    ] as [([UInt8], String)])
  func namesThatAreNotText(name: [UInt8], shown: String) throws {
    var tar = TinyTar()
    tar.add(nameBytes: name + Array("/../x".utf8), [1])
    try expectRefusal(tar.finished(), .hostile, "entry 1 is named \"\(shown)/../x\"; a part of its name is \"..\"")
  }

  @Test("with a hard link, or a symbolic one, to a name beyond ASCII", arguments: ["1", "2"])
  func linksBeyondASCII(type: String) throws {
    let sample = try SampleBackup()
    var tar = TinyTar()
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    tar.addExtended([("linkpath", Array("Gr\u{F6}\u{DF}e".utf8))])
    tar.add("Status2.plist", type: Character(type), link: "x")
    try expectRefusal(tar.finished(), .hostile, type == "1" ? "a hard link" : "a symbolic link")
  }

  @Test("with a NUL in a name, behind which a zip hides the rest")
  func nulInName() throws {
    var zip = TinyZip()
    zip.add(nameBytes: Array("Manifest.plist\u{0}.jpg".utf8), [1])
    try expectRefusal(zip.finished(), .hostile, "\\u{0}")
  }

  @Test("with the same names in a large zip, whose numbers have 64 bits")
  func largeZips() throws {
    let sample = try SampleBackup()
    var zip = TinyZip()
    for file in try sample.storedFiles() { zip.add(file.path, file.bytes) }
    let keychain = try open(zip.finishedAsLarge()).keychainFile(with: sample.keys)
    #expect(try keychain.bytes == sample.contents.keychainFile)
    zip.add(nameBytes: Array("a\u{0}b".utf8), [1])
    try expectRefusal(zip.finishedAsLarge(), .hostile, "\\u{0}")
    try expectRefusal(zip.finishedAsLarge(directoryAt: 1 << 50), .damaged, "lies outside the file")
    try expectRefusal(zip.finishedAsLarge(directoryAt: -1), .damaged, "lies outside the file")
  }

  @Test("with bytes that do not have the checksum that the zip says")
  func wrongChecksum() throws {
    var zip = TinyZip()
    for file in try SampleBackup().storedFiles() { zip.add(file.path, file.bytes) }
    var bytes = zip.finished()
    bytes[60] ^= 1
    let error = try #require(try failure(opening: bytes))
    #expect(error.code == .damaged)
    #expect(error.reason.contains("CRC"))
    try expectRefusal(zip.withoutDirectory(), .truncated, "the directory at the end of the zip is missing")
  }

  @Test("comes through a pipe as a zip, whose directory cannot be reached there")
  func zipThroughAPipe() throws {
    let pipe = Pipe()
    try pipe.fileHandleForWriting.write(contentsOf: Data(TinyZip().finished() + [UInt8](repeating: 0, count: 600)))
    try pipe.fileHandleForWriting.close()
    let error = #expect(throws: KeyhaulError.self) {
      try BackupArchive.open(.stream(descriptor: pipe.fileHandleForReading.fileDescriptor))
    }
    #expect(error?.code == .notStreamable)
  }

  @Test("with a name of 4,096 bytes")
  func overlongName() throws {
    var tar = TinyTar()
    tar.addExtended([("path", Array(String(repeating: "a", count: 4096).utf8))])
    tar.add("x", [1])
    try expectRefusal(tar.finished(), .hostile, "4096 bytes")
  }

  @Test("with names that would garble a terminal, which are shown escaped")
  func escapedNames() throws {
    var tar = TinyTar()
    tar.add("\u{1B}[2J\u{202E}..\\x", [1])
    try expectRefusal(tar.finished(), .hostile, "\"\\u{1B}[2J\\u{202E}..\\\\x\"")
  }

  @Test("with a file whose name ends like a folder's")
  func fileNamedLikeADirectory() throws {
    var zip = TinyZip()
    zip.add("a/", [1, 2], mode: 0o100600)
    let error = try #require(try failure(opening: zip.finished()))
    #expect([.hostile, .notABackup].contains(error.code))
  }

  @Test("with an encrypted entry")
  func encryptedZip() throws {
    var zip = TinyZip()
    zip.add(nameBytes: Array("Manifest.plist".utf8), [1, 2, 3], flags: 1)
    try expectRefusal(zip.finished(), .hostile, "encrypted by the container")
  }

  @Test("with two backups in it")
  func twoBackups() throws {
    let sample = try SampleBackup()
    var tar = TinyTar()
    for directory in ["first", "second"] {
      for file in try sample.storedFiles() { tar.add("\(directory)/\(file.path)", file.bytes) }
    }
    try expectRefusal(tar.finished(), .unsupported, "2 backups")
  }

  @Test("that claims four gigabytes in a hundred bytes")
  func hugeClaim() throws {
    var tar = TinyTar()
    tar.add("Manifest.plist", [1, 2, 3], size: 1 << 32)
    try expectRefusal(tar.finished(), .overLimit, "4,294,967,296 bytes")
    var zip = TinyZip()
    zip.add("Manifest.plist", [1, 2, 3], claimed: 0xFFFF_FFF0)
    try expectRefusal(zip.finished(), .overLimit, "4,294,967,280 bytes")
  }

  @Test("that claims less, or more, than it holds")
  func wrongClaim() throws {
    for claimed in [2, 4] {
      var zip = TinyZip()
      zip.add("Manifest.plist", [1, 2, 3], claimed: claimed)
      let error = try #require(try failure(opening: zip.finished()))
      #expect(error.category == .damaged)
    }
  }

  @Test("but anything else than a backup is only no backup")
  func notBackups() throws {
    var tar = TinyTar()
    tar.add("photo.jpg", [1, 2, 3])
    try expectRefusal(tar.finished(), .notABackup, "no Manifest.plist")
    var zip = TinyZip()
    zip.add("photo.jpg", [1, 2, 3])
    try expectRefusal(zip.finished(), .notABackup, "no Manifest.plist")
    try expectRefusal(TinyTar().finished(), .notABackup, "no Manifest.plist")
    try expectRefusal(TinyZip().finished(), .notABackup, "no Manifest.plist")
    try expectRefusal([], .notABackup, "empty")
    let neither = "it is not a folder, a tar file or a zip file"
    try expectRefusal([UInt8](repeating: 0x41, count: 4096), .notABackup, neither)
    try expectRefusal(Array("{\"a\": 1}".utf8) + [UInt8](repeating: 32, count: 600), .notABackup, neither)
  }
}
