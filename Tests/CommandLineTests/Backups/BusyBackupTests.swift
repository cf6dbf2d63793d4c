import Foundation
import KeyhaulKit
import TestSupport
import Testing

@Suite("Backups in use by another process")
struct BusyBackupTests {
  private static let changes = [
    "item add b --service s --account a --access-group G --secret-command 'echo x'",
    "item update b --kind generic --new-label x --yes", "item delete b --kind generic --yes",
    "rekey b --new-password-command 'echo x' --rounds 1", "seal b", "convert other.tar -o b/ --yes",
    "backup old-phone -o b/ --yes --rounds 1",
  ]
  private static let reads = [
    "verify b", "inspect b", "item find b", "export b -o out.json", "plan b --to new-phone", "diff b other.tar",
    "convert b -o copy.tar", "restore b --to new-phone --yes", "rekey b -n --new-password-command 'echo x' --rounds 1",
  ]

  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "a backup in use") { sandbox in
      try sandbox.backUp(to: "b/")
      try sandbox.succeed("convert b -o other.tar -q")
    }
  }

  /// Returns a command line with the backup's password. A conversion needs no password.
  private func withPassword(_ line: String) -> String {
    line.hasPrefix("convert") ? line : "\(line) --password-file .bp"
  }

  @Test("Commands that change a backup exit with 11 while another process reads it", arguments: changes)
  func changed(line: String) throws {
    let sandbox = try sandbox()
    let contentsBefore = try sandbox.fileContents(in: "b")
    let reader = try #require(try BackupLock.acquire(sandbox.home.appending(path: "b").path, for: .reading))
    let outcome = try sandbox.keyhaul(withPassword(line))
    #expect(outcome.status == 11, "\(outcome)")
    let nameAsTyped = line.contains("-o b/") ? "b/" : "b"
    #expect(
      outcome.errors.hasSuffix(
        """
        error: \(nameAsTyped) is in use
          why: another process is reading or changing it
          try: wait, or add --wait 30s

        """), "\(outcome)")
    #expect(try sandbox.fileContents(in: "b") == contentsBefore)
    reader.release()
  }

  @Test("Commands that read a backup exit with 11 while another process changes it", arguments: reads)
  func read(line: String) throws {
    let sandbox = try sandbox()
    let writer = try #require(try BackupLock.acquire(sandbox.home.appending(path: "b").path, for: .writing))
    let outcome = try sandbox.keyhaul(withPassword(line))
    #expect(outcome.status == 11, "\(outcome)")
    #expect(outcome.errors.contains("why: another process is changing it\n"), "\(outcome)")
    writer.release()
  }

  @Test("Commands can read a backup while another process reads it", arguments: reads)
  func shared(line: String) throws {
    let sandbox = try sandbox()
    let reader = try #require(try BackupLock.acquire(sandbox.home.appending(path: "b").path, for: .reading))
    #expect([0, 3].contains(try sandbox.keyhaul(withPassword(line)).status))
    reader.release()
  }

  @Test("A command with --wait waits until the backup is no longer in use", arguments: [changes[0], reads[0]])
  func waited(line: String) throws {
    let sandbox = try sandbox()
    let writer = try #require(try BackupLock.acquire(sandbox.home.appending(path: "b").path, for: .writing))
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 0.3)
      writer.release()
    }
    #expect(try sandbox.keyhaul("\(withPassword(line)) --wait 30s").status == 0)
  }
}
