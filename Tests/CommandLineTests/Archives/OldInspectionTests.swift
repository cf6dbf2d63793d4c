import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("A backup of iOS 4 to 9, as inspect shows it")
struct OldInspectionTests {
  @Test("has its list in clear: files, domains and sizes are there, and nothing of what is not stored is counted")
  func overview() throws {
    let world = try MoveWorld()
    let old = try OldBackup(in: world, named: "old")
    let text = words(try world.succeed("inspect old --home elsewhere"))
    #expect(text.contains("listed in Manifest.mbdb (the format of iOS 4 to 9): 3 files in 2 domains, none missing"))
    #expect(text.contains("no password · 3 files, \(old.totalBytes) bytes"), "\(text)")
    #expect(text.contains("18 items: 10 generic, 5 internet, 2 certificates, 1 key"))
    try old.remove("Library/plain.txt")
    let missing = try world.keyhaul("inspect old --home elsewhere")
    #expect(missing.status == 3 && words(missing.output).contains("3 files in 2 domains, 1 missing"))
    #expect(words(missing.output).contains("· 2 files, "))
  }

  /// Without the ends of lines, which depend on the width.
  private func words(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

  @Test("is the same out of a folder and out of one file made of it")
  func container() throws {
    let world = try MoveWorld()
    _ = try OldBackup(in: world, named: "old")
    try world.succeed("convert old -o old.tar -q --home elsewhere")
    for part in ["--tree -v", "--list", "--keybag"] {
      #expect(
        try world.succeed("inspect old.tar \(part) --home elsewhere")
          == world.succeed("inspect old \(part) --home elsewhere"))
    }
    let documents = try ["old", "old.tar"].map {
      try world.object(world.succeed("inspect \($0) --json -q --home elsewhere")) as NSDictionary
    }
    let (first, second) = (documents[0].mutableCopy(), documents[1].mutableCopy())
    for case let document as NSMutableDictionary in [first, second] {
      // The time is measured again.
      document.removeObject(forKey: "keybag")
    }
    #expect((first as? NSDictionary) == (second as? NSDictionary))
  }
}
