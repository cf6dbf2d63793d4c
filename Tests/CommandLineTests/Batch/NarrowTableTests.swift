import Foundation
import TestSupport
import Testing

@testable import keyhaul

/// The table of several backups. On a terminal, its lines break between words.
@Suite("Tables of several backups")
struct NarrowTableTests {
  private static let damaged = "three/0f1e2d3c4b5a69788796a5b4c3d2e1f000112233"

  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try IPhoneBackups.sandbox()
    try sandbox.devices.run(
      """
      mkdir three; cp -R encrypted \(Self.damaged); mv encrypted three/00008120-001C25D40C02002E
      mv plain three/00008101-000A1B2C3D4E001E
      """)
    let keychain = "\(Self.damaged)/\(PhoneSandbox.keychainPath)"
    try sandbox.write(Array(try sandbox.read(keychain).dropLast(7)), to: keychain)
    return sandbox
  }

  private static let commands = ["verify three", "plan three", "inspect three", "plan three --to new-phone"]

  @Test("On a narrow terminal, no line of a table is too long, and no word is broken", arguments: commands, [80, 60])
  func narrow(command: String, columns: Int) throws {
    let sandbox = try sandbox()
    let line = "keyhaul \(command) --password-file .bp"
    let wide = try sandbox.devices.run(line).output
    let narrow = try sandbox.devices.run("COLUMNS=\(columns) \(line)").output
    for line in narrow.split(separator: "\n") {
      // A path can be longer than a line. It then has its own line, after its label. The last line is a
      // command, which is never broken.
      let words = line.split(separator: " ")
      let isPath = words.count == 1 || (words.count == 2 && words[0].hasSuffix(":"))
      #expect(line.count <= columns || isPath || line == narrow.split(separator: "\n").last, "\(line)")
    }
    // Every word of a path, reason or advice in a pipe is also on the terminal.
    let words = Set(narrow.split(whereSeparator: \.isWhitespace))
    for line in wide.split(separator: "\n") where line.hasPrefix("      ") {
      for word in line.split(whereSeparator: \.isWhitespace) { #expect(words.contains(word), "\(word)\n\(narrow)") }
    }
    for path in [Self.damaged, "three/00008120-001C25D40C02002E", "three/00008101-000A1B2C3D4E001E"] {
      #expect(words.contains(Substring(path)), "\(narrow)")
    }
    let example = try #require(wide.split(separator: "\n").last { $0.hasPrefix("One of them in full: ") })
    let label = "One of them in full:"
    let isShort = example.count <= columns
    #expect(narrow.hasSuffix(isShort ? "\(example)\n" : "\(label)\n \(example.dropFirst(label.count))\n"), "\(narrow)")
  }

  @Test("In a pipe, each reason, error and advice of a table is one line")
  func piped() throws {
    let sandbox = try sandbox()
    let output = try sandbox.keyhaul("verify three --password-file .bp").output
    let lines = output.split(separator: "\n").map(String.init)
    let start = try #require(lines.firstIndex { $0.hasSuffix(Self.damaged) && $0.hasPrefix("  13") })
    try #require(lines.count > start + 3)
    #expect(lines[start + 1] == "      error: \(Self.damaged) is damaged")
    #expect(lines[start + 2].hasPrefix("        why: its keychain is lost"), "\(output)")
    #expect(lines[start + 3].hasPrefix("      cause: KeychainDomain/keychain-backup.plist: "), "\(output)")
    // A password for a backup without one also leads to an advice.
    let refused = try #require(lines.firstIndex { $0.contains("has no password, but --password-file provides one") })
    #expect(
      lines[refused + 2] == "        try: if it is the right backup, leave --password-file out", "\(output)")
  }

  @Test(
    "A table shows whether a backup has a seal and whether the seal is broken",
    arguments: ["verify", "inspect", "plan"])
  func seal(command: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("mkdir shelf")
    try sandbox.backUp(to: "shelf/whole/")
    try sandbox.devices.run(
      "cp -R shelf/whole shelf/broken; echo >> shelf/broken/Info.plist; cp -R shelf/whole shelf/none")
    try sandbox.devices.run("rm shelf/none/Keyhaul.seal")
    let output = try sandbox.keyhaul("\(command) shelf --password-file .bp").output
    let lines = output.split(separator: "\n").map(String.init)
    #expect(lines.first?.contains("  SEAL    BACKUP") == true, "\(output)")
    for (name, seal) in [("broken", "broken"), ("none", "no    "), ("whole", "yes   ")] {
      let row = try #require(lines.first { $0.hasSuffix("  shelf/\(name)") }, "\(output)")
      #expect(row.hasSuffix("  \(seal)  shelf/\(name)"), "\(row)")
    }
    let rows = try sandbox.keyhaul("\(command) shelf --password-file .bp --format ndjson").output.split(separator: "\n")
    #expect(try rows.map { try sandbox.object(String($0))["has_seal"] as? Bool } == [true, false, true])
  }
}
