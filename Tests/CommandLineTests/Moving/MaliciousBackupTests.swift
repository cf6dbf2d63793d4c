import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Malicious backups")
struct MaliciousBackupTests {
  struct Trick: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var name = "X/evil"
    /// The type flag of ustar: 0 file, 1 hard link, 2 symbolic link, 3 character device, 4 block device, 6 pipe.
    var kind: Character = "0"
    var target = ""
  }

  static let tricks = [
    Trick(testDescription: "a path that climbs out", name: "X/../../victim/evil"),
    Trick(testDescription: "a path that begins with ..", name: "../victim/evil"),
    Trick(testDescription: "an absolute path", name: "/etc/keyhaul-victim/evil"),
    Trick(testDescription: "a symbolic link out", kind: "2", target: "../../victim"),
    Trick(
      testDescription: "a symbolic link in place of the manifest", name: "X/Manifest.plist", kind: "2",
      target: "/etc/passwd"),
    Trick(testDescription: "a hard link", kind: "1", target: "/etc/passwd"),
    Trick(testDescription: "a device", kind: "3"),
    Trick(testDescription: "a disk", kind: "4"),
    Trick(testDescription: "a pipe", kind: "6"),
    Trick(testDescription: "a backslash path", name: #"X\..\..\evil"#),
  ]

  @Test("A malicious tar is rejected with its problem, and nothing is written", arguments: tricks)
  func tar(trick: Trick) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var tar = CraftedBackup()
    tar.add(name: trick.name, kind: trick.kind, target: trick.target, trick.kind == "0" ? Array("evil".utf8) : [])
    for file in try sandbox.files(in: "b") { tar.add(name: "X/\(file)", try sandbox.read("b/\(file)")) }
    try sandbox.write(tar.tar, to: "evil.tar")
    try expectRefusal(sandbox, "evil.tar")
  }

  @Test(
    "A malicious zip is rejected with its problem, and nothing is written",
    arguments: tricks.filter { !["1", "3", "4", "6"].contains($0.kind) })
  func zip(trick: Trick) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var zip = CraftedBackup()
    for file in try sandbox.files(in: "b") where "X/\(file)" != trick.name {
      zip.add(name: "X/\(file)", try sandbox.read("b/\(file)"))
    }
    zip.add(name: trick.name, kind: trick.kind, Array((trick.kind == "2" ? trick.target : "evil").utf8))
    try sandbox.write(zip.zip, to: "evil.zip")
    try expectRefusal(sandbox, "evil.zip")
  }

  /// The unchanged contents of every sandbox's target.
  private static let untouched = Result { try PhoneSandbox().contents(of: "new-phone") }

  private func expectRefusal(_ sandbox: PhoneSandbox, _ name: String) throws {
    let victim = sandbox.home.appending(path: "victim")
    try FileManager.default.createDirectory(at: victim, withIntermediateDirectories: true)
    try Data("mine".utf8).write(to: victim.appending(path: "evil"))
    let before = (try sandbox.names(), try Self.untouched.get())
    for verb in ["restore \(name) --to new-phone --yes", "plan \(name) --to new-phone", "inspect \(name)"] {
      let outcome = try sandbox.keyhaul("\(verb) --password-file .bp")
      #expect(outcome.status == 14 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.errors.hasPrefix("error: refused to read \(name)\n  why: "), "\(outcome.errors)")
      #expect(outcome.errors.contains("  try: don't trust this file; nothing was written\n"))
    }
    #expect(try sandbox.names() == before.0 && sandbox.contents(of: "new-phone") == before.1)
    #expect(try sandbox.names(in: "victim") == ["evil"] && sandbox.read("victim/evil") == Array("mine".utf8))
    #expect(!FileManager.default.fileExists(atPath: "/etc/keyhaul-victim"))
  }

  @Test("A crafted backup without a malicious part is accepted")
  func honest() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var forged = CraftedBackup()
    for file in try sandbox.files(in: "b") { forged.add(name: "X/\(file)", try sandbox.read("b/\(file)")) }
    try sandbox.write(forged.tar, to: "b.tar")
    try sandbox.write(forged.zip, to: "b.zip")
    let intact = PlannedItems(try sandbox.plan("b/"))
    #expect(intact.migrating.count == 14)
    #expect(PlannedItems(try sandbox.plan("b.tar")) == intact)
    #expect(PlannedItems(try sandbox.plan("b.zip")) == intact)
  }

  @Test("A folder with a link, pipe or folder in place of a file is rejected without waiting")
  func directory() throws {
    let sandbox = try PhoneSandbox()
    for (trick, code) in [
      ("ln -s ../b/Manifest.db", Int32(14)), ("mkfifo", 14), ("mkdir", 14), ("ln -s /dev/zero", 14),
    ] {
      try sandbox.devices.run("rm -rf b")
      try sandbox.backUp(to: "b/")
      try sandbox.devices.run("mv b/Manifest.db away && \(trick) b/Manifest.db")
      let outcome = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp")
      #expect(outcome.status == code, "\(trick): \(outcome)")
    }
  }
}

/// Archives as no honest program writes them. Sources: POSIX.1-2017 "pax", ustar interchange format; PKWARE APPNOTE.
struct CraftedBackup {
  private struct Entry {
    let name: String
    let kind: Character
    let target: String
    let bytes: [UInt8]
  }

  private var entries: [Entry] = []

  mutating func add(name: String, kind: Character = "0", target: String = "", _ bytes: [UInt8]) {
    entries.append(Entry(name: name, kind: kind, target: target, bytes: bytes))
  }

  var tar: [UInt8] {
    var bytes: [UInt8] = []
    for entry in entries {
      var header = [UInt8](repeating: 0, count: 512)
      func put(_ text: String, at offset: Int) {
        for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
      }
      func octal(_ value: Int, _ digits: Int) -> String {
        let text = String(value, radix: 8)
        return String(repeating: "0", count: digits - text.count) + text
      }
      put(entry.name, at: 0)
      put("0000600\u{0}0000000\u{0}0000000\u{0}", at: 100)
      put("\(octal(entry.bytes.count, 11))\u{0}\(octal(1_700_000_000, 11))\u{0}", at: 124)
      put("        ", at: 148)
      put(String(entry.kind), at: 156)
      put(entry.target, at: 157)
      put("ustar\u{0}00", at: 257)
      let sum: Int = header.reduce(0) { $0 + Int($1) }
      put("\(octal(sum, 6))\u{0} ", at: 148)
      bytes += header
      bytes += entry.bytes
      bytes += [UInt8](repeating: 0, count: (512 - entry.bytes.count % 512) % 512)
    }
    return bytes + [UInt8](repeating: 0, count: 1024)
  }

  var zip: [UInt8] {
    func little(_ value: Int, _ count: Int) -> [UInt8] { [UInt8](littleEndian: value, count: count) }
    var bytes: [UInt8] = []
    var directory: [UInt8] = []
    for entry in entries {
      let name = Array(entry.name.utf8)
      let common =
        little(0, 2) + little(0, 2) + little(0, 2) + little(0x5A21, 2) + little(Int(Self.crc32(entry.bytes)), 4)
        + little(entry.bytes.count, 4) + little(entry.bytes.count, 4) + little(name.count, 2) + little(0, 2)
      let mode = entry.kind == "2" ? 0o120777 : 0o100600
      directory +=
        little(0x0201_4B50, 4) + little(0x0314, 2) + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2)
        + little(mode << 16, 4) + little(bytes.count, 4) + name
      bytes += little(0x0403_4B50, 4) + little(20, 2) + common + name + entry.bytes
    }
    let end =
      little(0x0605_4B50, 4) + little(0, 4) + little(entries.count, 2) + little(entries.count, 2)
      + little(directory.count, 4) + little(bytes.count, 4) + little(0, 2)
    return bytes + directory + end
  }

  private static func crc32(_ bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 {
        let isOdd = sum & 1 == 1
        sum >>= 1
        if isOdd { sum ^= 0xEDB8_8320 }
      }
    }
    return ~sum
  }
}
