import Foundation
import GRDB
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Write-ahead logs of a manifest")
struct JournalCommandTests {
  @Test("Every command reports an unreadable Manifest.db-wal, and a copy in an archive still contains it")
  func unreadableLog() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("convert b.tar -o b/ -q")
    try sandbox.write(Array("rows that nobody reads".utf8), to: "b/Manifest.db-wal")
    let finding =
      "Manifest.db-wal: it is stored next to Manifest.db, and 22 bytes of it are not read: Manifest.db is encrypted, or not "
      + "a database"
    let cases: [(line: String, status: Int32)] = [
      ("inspect b --password-file .bp", 0), ("verify b --password-file .bp", 13), ("verify b --quick", 13),
      ("plan b --to new-phone --password-file .bp", 3), ("restore b --to new-phone --yes --password-file .bp", 13),
      ("rekey b --password-file .bp --new-password-file .bp", 13), ("convert b -o c.tar", 0),
      ("convert b --decrypted -o clear/ --password-file .bp", 3), ("export b --files out --password-file .bp", 3),
    ]
    for (line, status) in cases {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      let printed = unwrapped(outcome.errors + outcome.output)
      #expect(printed.contains(finding), "\(line): \(printed)")
      #expect(!printed.contains("b is intact") && !printed.contains("Nothing in b is damaged"), "\(line): \(printed)")
    }
    #expect(try sandbox.read("b/Manifest.db-wal") == Array("rows that nobody reads".utf8))
    #expect(try sandbox.keyhaul("verify c.tar --password-file .bp").status == 13)
  }

  @Test("Inspect, export, verify and copies include the rows in Manifest.db-wal")
  func merged() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("convert b.tar --decrypted -o b/ --password-file .bp -q")
    let count = try fileCount(of: "b", in: sandbox)
    try moveRowsToLog(of: "b", in: sandbox)
    let note = "part of the manifest comes from its log, Manifest.db-wal"
    for command in [
      "inspect b", "export b --files out", "verify b --password-file .bp", "convert b -o c/", "inspect c",
      "convert b -o c.tar", "verify c.tar --password-file .bp",
    ] {
      let outcome = try sandbox.keyhaul(command)
      #expect(outcome.status == 0, "\(command): \(outcome)")
      #expect(unwrapped(outcome.errors + outcome.output).contains(note), "\(command): \(outcome)")
      #expect(!outcome.errors.contains("not copied"), "\(command): \(outcome)")
    }
    for copy in ["b", "c", "c.tar"] { #expect(try fileCount(of: copy, in: sandbox) == count, "\(copy)") }
    #expect(count > 0)
  }

  /// Moves all rows of a manifest from its database to its log.
  private func moveRowsToLog(of backup: String, in sandbox: PhoneSandbox) throws {
    try sandbox.devices.run("rm \(backup)/Keyhaul.seal; mkdir open; cp \(backup)/Manifest.db open/")
    let queue = try DatabaseQueue(path: sandbox.home.appending(path: "open/Manifest.db").path)
    try queue.writeWithoutTransaction { database in
      for sql in [
        "CREATE TEMP TABLE moved AS SELECT * FROM Files", "DELETE FROM Files", "VACUUM", "PRAGMA journal_mode = WAL",
        "PRAGMA wal_autocheckpoint = 0", "INSERT INTO Files SELECT * FROM moved",
      ] { try database.execute(sql: sql) }
      // SQLite deletes the log when the last connection to the database is closed.
      try sandbox.devices.run("cp open/Manifest.db open/Manifest.db-wal open/Manifest.db-shm \(backup)/")
    }
    try queue.close()
  }

  private func fileCount(of backup: String, in sandbox: PhoneSandbox) throws -> Int64 {
    let document = try sandbox.devices.document("keyhaul inspect \(backup) --json")
    return document["listed"]?["files"]?.integerValue ?? -1
  }
}
