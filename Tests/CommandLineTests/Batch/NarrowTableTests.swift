import Foundation
import TestSupport
import Testing

@testable import keyhaul

/// The table of several backups. On a terminal, its lines break between words.
@Suite("Tables of several backups")
struct NarrowTableTests {
  private static let damagedPath = "three/0f1e2d3c4b5a69788796a5b4c3d2e1f000112233"

  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try IPhoneBackups.sandbox()
    try sandbox.devices.run(
      """
      mkdir three; cp -R encrypted \(Self.damagedPath); mv encrypted three/00008120-001C25D40C02002E
      mv plain three/00008101-000A1B2C3D4E001E
      """)
    let keychain = "\(Self.damagedPath)/\(PhoneSandbox.keychainPath)"
    try sandbox.write(Array(try sandbox.read(keychain).dropLast(7)), to: keychain)
    return sandbox
  }

  private static let commands = ["verify three", "plan three", "inspect three", "plan three --to new-phone"]

  @Test("On a narrow terminal, no line of a table is too long, and no word is broken", arguments: commands, [80, 60])
  func narrow(command: String, columns: Int) throws {
    let sandbox = try sandbox()
    let line = "keyhaul \(command) --password-file .bp"
    let piped = try sandbox.devices.run(line).output
    let narrow = try sandbox.devices.run("COLUMNS=\(columns) \(line)").output
    let narrowLines = narrow.split(separator: "\n")
    // The last line is a command, which is never broken.
    for line in narrowLines.dropLast() {
      // A path can be longer than a line. It then has its own line, after its label.
      let words = line.split(separator: " ")
      let isPath = words.count == 1 || (words.count == 2 && words[0].hasSuffix(":"))
      #expect(line.count <= columns || isPath, "\(line)")
    }
    // Every word of a path, reason or advice in a pipe is also on the terminal.
    let narrowWords = Set(narrow.split(whereSeparator: \.isWhitespace))
    for line in piped.split(separator: "\n") where line.hasPrefix("      ") {
      let missingWords = Set(line.split(whereSeparator: \.isWhitespace)).subtracting(narrowWords)
      #expect(missingWords.isEmpty, "\(narrow)")
    }
    for path in [Self.damagedPath, "three/00008120-001C25D40C02002E", "three/00008101-000A1B2C3D4E001E"] {
      #expect(narrowWords.contains(Substring(path)), "\(narrow)")
    }
    // If the example does not fit on its line, it follows on a line of its own.
    let label = "One of them in full:"
    let exampleLine = try #require(piped.split(separator: "\n").last { $0.hasPrefix("\(label) ") })
    let wrappedExample = "\(label)\n \(exampleLine.dropFirst(label.count))"
    #expect(narrow.hasSuffix(exampleLine.count <= columns ? "\(exampleLine)\n" : "\(wrappedExample)\n"), "\(narrow)")
  }

  @Test("In a pipe, each reason, error and advice of a table is one line")
  func piped() throws {
    let sandbox = try sandbox()
    let output = try sandbox.keyhaul("verify three --password-file .bp").output
    let lines = output.split(separator: "\n").map(String.init)
    let damagedRow = try #require(lines.firstIndex { $0.hasSuffix(Self.damagedPath) && $0.hasPrefix("  13") })
    try #require(lines.count > damagedRow + 3)
    #expect(lines[damagedRow + 1] == "      error: \(Self.damagedPath) is damaged")
    #expect(lines[damagedRow + 2].hasPrefix("        why: its keychain is lost"), "\(output)")
    #expect(lines[damagedRow + 3].hasPrefix("      cause: KeychainDomain/keychain-backup.plist: "), "\(output)")
    // A password for a backup without one also leads to advice.
    let errorLine = try #require(lines.firstIndex { $0.contains("has no password, but --password-file provides one") })
    #expect(
      lines[errorLine + 2] == "        try: if it is the right backup, leave --password-file out", "\(output)")
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
