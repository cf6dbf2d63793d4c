import Foundation
import Testing

@testable import keyhaul

@Suite("What exporting, rekeying and converting say and leave behind")
struct ArchiveSecrecyTests {
  private static let newPassword = "battery staple"

  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.write(Array("\(Self.newPassword)\n".utf8), to: ".np")
    try world.backUp(to: "b.tar")
    try world.backUp(to: "b/")
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    try FileManager.default.createDirectory(
      atPath: world.home.appending(path: "tmp").path, withIntermediateDirectories: true)
    return world
  }

  @Test("is readable by its owner alone, whatever the umask is")
  func modes() throws {
    let world = try world()
    for line in [
      "export b.tar -o x.csv --reveal --password-file .bp", "export b.tar -o x.json --password-file .bp",
      "export b.tar --domain KeychainDomain --path keychain-backup.plist -o x.plist --password-file .bp",
      "convert b -o x.tar", "convert b -o x/", "rekey b.tar --password-file .bp --new-password-file .np",
      "rekey plain --new-password-file .np --rounds 5",
    ] {
      #expect(try world.devices.run("umask 000; keyhaul \(line)").status == 0, "\(line)")
    }
    for name in ["x.csv", "x.json", "x.plist", "x.tar", "x/Manifest.plist", "b.tar", "plain/Manifest.plist"] {
      #expect(try world.devices.permissions(of: name) == 0o600, "\(name)")
    }
    #expect(try world.devices.permissions(of: "x") == 0o700)
    #expect(try world.devices.permissions(of: "plain") == 0o700)
  }

  @Test("asks for the new password twice, and for the old one first")
  func prompts() throws {
    let world = try world()
    let outcome = try world.keyhaul("rekey b.tar", typed: [MoveWorld.password, "fresh one", "fresh one"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.terminal == "Password of b.tar: \nNew password for b.tar: \nagain: \n")
    let different = try world.keyhaul("rekey b.tar", typed: ["old one", "fresh one", "a", "b"])
    #expect(different.status == 1 && different.errors.hasPrefix("error: the two passwords differ"))
    let wrong = try world.keyhaul("rekey b.tar", typed: Array(repeating: MoveWorld.password, count: 3))
    #expect(wrong.status == 12 && !wrong.terminal.contains("New password"), "\(wrong)")
  }
}
