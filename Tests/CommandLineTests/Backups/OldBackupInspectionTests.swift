import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Inspecting backups of iOS 4 to 9")
struct OldBackupInspectionTests {
  @Test("Files, domains and sizes of an old backup are shown without a password")
  func overview() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    let text = unwrapped(try sandbox.succeed("inspect old --home elsewhere"))
    #expect(text.contains("listed in Manifest.mbdb (the format of iOS 4 to 9): 3 files in 2 domains, none missing"))
    #expect(text.contains("no password · 3 files, \(old.totalSize) bytes"), "\(text)")
    #expect(text.contains("18 items: 10 generic, 5 internet, 2 certificates, 1 key"))
    try old.removePayload(of: "Library/plain.txt")
    let missing = try sandbox.keyhaul("inspect old --home elsewhere")
    #expect(missing.status == 3 && unwrapped(missing.output).contains("3 files in 2 domains, 1 missing"))
    #expect(unwrapped(missing.output).contains("· 2 files, "))
  }

  @Test("An old backup looks the same as a folder and as one file")
  func container() throws {
    let sandbox = try PhoneSandbox()
    _ = try OldBackup(in: sandbox, named: "old")
    try sandbox.succeed("convert old -o old.tar -q --home elsewhere")
    for part in ["--tree -v", "--list", "--keybag"] {
      let ofContainer = try sandbox.succeed("inspect old.tar \(part) --home elsewhere")
      let ofFolder = try sandbox.succeed("inspect old \(part) --home elsewhere")
      #expect(withoutTimes(ofContainer) == withoutTimes(ofFolder))
    }
    let documents = try ["old", "old.tar"].map {
      var document = try sandbox.object(sandbox.succeed("inspect \($0) --json -q --home elsewhere"))
      // The keybag contains measured durations, which differ from run to run.
      document["keybag"] = nil
      return document as NSDictionary
    }
    #expect(documents[0] == documents[1])
  }

  /// Removes the measured time to unlock the keybag, which differs from run to run.
  private func withoutTimes(_ text: String) -> String {
    text.replacing(/, [^,\n]* on this machine/, with: "")
  }
}
