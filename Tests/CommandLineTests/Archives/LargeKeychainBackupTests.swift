import Foundation
import Testing

@testable import keyhaul

@Suite("A large keychain that is backed up")
struct LargeKeychainBackupTests {
  /// old-phone with nine megabytes of secrets besides, and a folder for temporary files.
  private func world() throws -> MoveWorld {
    try MoveWorld(named: "large keychain") { world in
      try world.write([UInt8](repeating: 120, count: 1 << 20), to: ".large")
      for number in 0..<9 {
        try world.succeed("item add old-phone --service large --account n\(number) --secret-file .large")
      }
      try world.devices.run("mkdir tmp")
    }
  }

  private static let line = "backup old-phone --password-file .bp --rounds 1 --yes -o"

  @Test(
    "needs room for temporary files, says where there is none, and leaves nothing then", arguments: ["b/", "b.tar"])
  func noRoom(output: String) throws {
    let world = try world()
    let before = try world.names()
    let outcome = try world.devices.run("TMPDIR=$PWD/nowhere keyhaul \(Self.line) \(output)")
    #expect(outcome.status == 1)
    let told = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(told.hasPrefix("error: cannot back up old-phone: a temporary file cannot be written why: a temporary file"))
    #expect(
      told.hasSuffix(
        "nowhere\": no such file or directory try: set TMPDIR to a folder with free space"), "\(told)")
    #expect(try world.names() == before)
    // A small one needs none.
    #expect(
      try world.devices.run("TMPDIR=$PWD/nowhere keyhaul \(Self.line.replacing("old", with: "new")) s/").status == 0)
  }

  @Test("is whole, leaves no temporary file, and is counted the same whether its items are named or not")
  func counts() throws {
    let world = try world()
    let plain = try world.devices.run("TMPDIR=$PWD/tmp keyhaul \(Self.line) b/")
    let named = try world.devices.run("TMPDIR=$PWD/tmp keyhaul \(Self.line) c/ -v")
    let document = try world.object(world.succeed("\(Self.line) d/ --json"))
    #expect(try world.names(in: "tmp").isEmpty)
    let items = try #require(document["items"] as? Int)
    let total = try #require(document["total"] as? Int)
    for (outcome, name) in [(plain, "b"), (named, "c")] {
      #expect(outcome.status == 0)
      #expect(outcome.output.hasPrefix("Backed up \(items) of \(total) items from old-phone to \(name)/ (encrypted, "))
      let listed = outcome.output.split(separator: "\n").count { $0.hasPrefix("  + ") }
      #expect(listed == (name == "c" ? items : 0))
      let verified = try world.succeed("verify \(name) --password-file .bp")
      #expect(verified.contains("items        \(items) of \(items) can be decrypted"))
      #expect(verified.contains("\(name) is intact."))
    }
  }
}
