import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Key derivation from a backup's password")
struct KeyDerivationTests {
  /// Command lines, each with the number of keys that it derives: one for each backup and one for each new password.
  private static let lines: [(line: String, keyCount: Int)] = [
    ("plan b --to new-phone", 1), ("plan b --to new-phone --compare", 1), ("plan b --to new-phone --by-app", 1),
    ("restore b --to new-phone -n", 1), ("restore b --to new-phone --yes", 1),
    ("why b --service chat.example --to new-phone", 1), ("diff b old-phone", 1), ("diff b b", 2),
    ("export b -o x.json", 1), ("export b --domain KeychainDomain --path keychain-backup.plist -o x.plist", 1),
    ("inspect b --list", 1), ("inspect b --tree", 1), ("verify b", 1),
    ("rekey b --new-password-file .np -n", 2), ("rekey b --new-password-file .np", 2),
  ]

  @Test("A command derives the key of each backup once", arguments: lines)
  func once(line: String, keyCount: Int) throws {
    let sandbox = try PhoneSandbox(named: "backup with a key") { sandbox in
      try sandbox.write(Array("battery staple\n".utf8), to: ".np")
      try sandbox.backUp(to: "b/")
    }
    let outcome = try sandbox.keyhaul("\(line) --password-file .bp --json")
    #expect([0, 2, 3].contains(outcome.status), "\(outcome)")
    #expect(try Self.derivationCount(in: outcome.errors) == keyCount, "\(outcome.errors)")
  }

  @Test("No key is derived to copy a backup, to plan for a device, or for verify --quick")
  func never() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    for line in ["convert b -o c.tar --json", "plan old-phone --to new-phone --json", "verify b --quick --json"] {
      let outcome = try sandbox.keyhaul(line)
      #expect([0, 3].contains(outcome.status), "\(outcome)")
      #expect(try Self.derivationCount(in: outcome.errors) == 0, "\(outcome.errors)")
    }
  }

  @Test("Only BackupUnlocker unlocks backups in the program")
  func singleCaller() throws {
    let sources = Repository.root.appending(path: "Sources")
    let programPaths = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
      .filter { $0.hasSuffix(".swift") && $0.hasPrefix("CommandLine/") }
    let callers = try programPaths.filter { path in
      try String(contentsOf: sources.appending(path: path), encoding: .utf8).contains(/archive\.unlock\(/)
    }
    #expect(callers == ["CommandLine/keyhaul/Arguments/Unlocking/BackupUnlocker.swift"])
  }

  /// Returns the number of key derivations that the status lines of `--json` report as complete.
  private static func derivationCount(in errors: String) throws -> Int {
    let statusLines = try errors.split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
    return statusLines.count { line in
      let (done, total) = (line["done"]?.integerValue, line["total"]?.integerValue)
      return line["phase"]?.stringValue == "derive-key" && line["done"] != nil && done == total
    }
  }
}
