import Foundation
import GRDB
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Verification of streamed backups")
struct StreamVerificationTests {
  /// Returns a sandbox with a backup without a password that has 14 additional files.
  ///
  /// - Parameter isDamaged: Whether the record of the additional file with this number is damaged.
  private static func sandbox(isDamaged: @Sendable (_ number: Int) -> Bool) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.removeSeal("plain")
    let manifest = try DatabaseQueue(path: sandbox.home.appending(path: "plain/Manifest.db").path)
    try manifest.writeWithoutTransaction { database in
      let record = try #require(try Data.fetchOne(database, sql: "SELECT file FROM Files WHERE flags = 1"))
      for number in 0..<14 {
        let path = "file\(number)"
        let name = String(hexadecimal: try Digest.sha1(Array("HomeDomain-\(path)".utf8)))
        try database.execute(
          sql: "INSERT INTO Files VALUES (?, 'HomeDomain', ?, 1, ?)",
          arguments: [name, path, isDamaged(number) ? Data([0, 1, 2]) : record])
        let folder = sandbox.home.appending(path: "plain/\(name.prefix(2))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("content".utf8).write(to: folder.appending(path: name))
      }
    }
    try sandbox.succeed("convert plain -o plain.tar -q")
    return sandbox
  }

  /// Returns the faults in file records. Faults in payloads are left out, because a stream's payloads are not read.
  private func recordFaults(inDocument output: String, in sandbox: PhoneSandbox) throws -> [String] {
    let faults = try #require(try sandbox.object(output)["faults"] as? [[String: Any]])
    return faults.filter { $0["id"] as? String == "record-malformed" }
      .map { "\($0["check"] ?? "") \($0["file"] ?? "") \($0["detail"] ?? "")" }.sorted()
  }

  @Test("Verify reports the same damaged records for a streamed backup as for a file, and counts them")
  func damaged() throws {
    let sandbox = try Self.sandbox(isDamaged: { $0 % 2 == 0 })
    let file = try sandbox.keyhaul("verify plain.tar --json")
    let stream = try sandbox.keyhaul("verify - --json < plain.tar")
    #expect(file.status == 13 && stream.status == 13, "\(stream)")
    let expectedFaults = try recordFaults(inDocument: file.output, in: sandbox)
    #expect(expectedFaults.count == 7)
    #expect(try recordFaults(inDocument: stream.output, in: sandbox) == expectedFaults)
    #expect(try sandbox.object(stream.output)["fault_count"] as? Int == 7)
    let text = try sandbox.keyhaul("verify - < plain.tar")
    #expect(unwrapped(text.output).contains("FAIL files 7 damaged"), "\(text.output)")
    for number in 0..<14 {
      #expect(text.output.contains("HomeDomain/file\(number):") == (number % 2 == 0), "\(text.output)")
    }
    #expect(unwrapped(text.output).contains("is damaged: 7 files are damaged"), "\(text.output)")
  }

  @Test("A streamed backup with intact records has no faults, although its payloads are not read")
  func intact() throws {
    let sandbox = try Self.sandbox(isDamaged: { _ in false })
    let stream = try sandbox.keyhaul("verify - < plain.tar")
    #expect(stream.status == 0 && unwrapped(stream.output).contains("- files not checked: a stream"), "\(stream)")
  }
}
