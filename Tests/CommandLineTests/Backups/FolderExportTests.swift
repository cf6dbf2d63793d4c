import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Exporting files of a backup")
struct FolderExportTests {
  @Test("The seal shows whether a file has changed, even without a digest in the manifest", arguments: [false, true])
  func sealed(isChanged: Bool) throws {
    let backup = try BackupWithFiles(hasDigests: false)
    let sandbox = backup.sandbox
    let unsealed = try sandbox.keyhaul("export b --files before")
    #expect(unsealed.errors.contains("7 files without a digest: a change in them cannot be seen"), "\(unsealed)")
    try sandbox.succeed("seal b -q")
    if isChanged {
      let name = try Digest.sha1(Array("HomeDomain-Library/notes.txt".utf8)).hex
      try sandbox.write(Array("notEs".utf8), to: "b/\(name)", keepingSeal: true)
    }
    let allFiles = try sandbox.keyhaul("export b --files out")
    #expect(allFiles.errors.contains("digests of \(isChanged ? 6 : 7) files match\n"), "\(allFiles)")
    #expect(!allFiles.errors.contains("cannot be seen"))
    #expect(allFiles.errors.contains("\"HomeDomain/Library/notes.txt\"") == isChanged, "\(allFiles)")
    let changedFile = try sandbox.keyhaul("export b --domain HomeDomain --path Library/notes.txt -o one --json")
    let document = try sandbox.object(changedFile.output)
    #expect(document["digest_fits"] is NSNull && document["as_sealed"] as? Bool == !isChanged)
    #expect(changedFile.errors.contains("it has changed since the backup was sealed") == isChanged, "\(changedFile)")
    let expectedStatus: Int32 = isChanged ? 3 : 0
    #expect(allFiles.status == expectedStatus && changedFile.status == expectedStatus)
  }

  @Test("Every file is exported, and the export's manifest lists each one")
  func allFiles() throws {
    let backup = try BackupWithFiles()
    let outcome = try backup.sandbox.keyhaul("export b --files out")
    #expect(outcome.status == 0)
    #expect(outcome.output == "Wrote 7 files of b to out (46 bytes).\n")
    #expect(
      outcome.errors == """
        out/keyhaul-files.jsonl lists each file with its SHA-256.
          digests of 7 files match

        """)
    #expect(try backup.exportedPaths(in: "out") == BackupWithFiles.files.map { "\($0.domain)/\($0.path)" }.sorted())
    #expect(try backup.sandbox.read("out/HomeDomain/Library/SMS/sms.db") == Array("messages".utf8))
    let repeated = try backup.sandbox.keyhaul("export b --files out")
    #expect(
      repeated.output
        == "Nothing to do: 7 files of b were already in out, and were not compared again.\n")
    // A payload that is missing now is reported, although an earlier export wrote its file.
    try backup.sandbox.devices.run("rm $(grep -lx messages b/*)")
    let incomplete = try backup.sandbox.keyhaul("export b --files out")
    #expect(
      incomplete.status == 3 && incomplete.errors.contains("1 file could not be read, and was not written"),
      "\(incomplete)")
    #expect(incomplete.output.hasPrefix("Wrote 6 files of b to out ("), "\(incomplete)")
  }

  @Test(
    "Files are selected by domain, by app with its groups and plugins, and by path",
    arguments: [
      ("--domain HomeDomain", ["sms.db", "notes.txt"]),
      ("--domain '*.chat' --domain '*family'", ["chat.txt", "family.txt"]),
      ("--app org.example.chat", ["chat.txt", "shared.txt", "widget.txt"]),
      ("--app org.example.chat --domain HomeDomain", ["chat.txt", "shared.txt", "widget.txt", "sms.db", "notes.txt"]),
      ("--path '*.txt' --domain HomeDomain", ["notes.txt"]), ("--path 'Documents/*'", ["chat.txt", "other.txt"]),
    ])
  func chosen(flags: String, names: [String]) throws {
    let backup = try BackupWithFiles()
    try backup.sandbox.succeed("export b --files out \(flags) -q")
    let exportedNames = try backup.exportedPaths(in: "out").map { String($0.split(separator: "/").last ?? "") }
    #expect(exportedNames.sorted() == names.sorted())
  }

  @Test("Export --files writes a table with --format csv, and a document with --json")
  func formats() throws {
    let backup = try BackupWithFiles()
    try backup.sandbox.succeed("export b --files out --path '*.db' --format csv -q")
    let table = String(decoding: try backup.sandbox.read("out/keyhaul-files.csv"), as: UTF8.self)
    let rows = table.split(separator: "\r\n")
    #expect(rows.count == 2)
    // printf messages | sha256sum
    let digest = "f5cccfb737512bedd4f2e39e7d72425ae8d3ebf8aa8ab6f966bef1fc916f5011"
    #expect(
      rows.last
        == "HomeDomain/Library/SMS/sms.db,8,\(digest),4,HomeDomain,2014-05-13T16:53:20Z,Library/SMS/sms.db,file,644,right,,,"
    )
    let document = try backup.sandbox.object(backup.sandbox.succeed("export b --files all --json"))
    #expect(document["format"] as? String == "files-export/1" && document["files"] as? Int == 7)
    #expect(document["bytes"] as? Int == 46 && document["manifest"] as? String == "all/keyhaul-files.jsonl")
    let dryRun = try backup.sandbox.object(backup.sandbox.succeed("export b --files none --json -n"))
    #expect(dryRun["files"] as? Int == 7 && dryRun["dry_run"] as? Bool == true)
    #expect(try !backup.sandbox.names().contains("none"))
  }

  @Test("A damaged or missing file ends the export with 3, and the other files are written")
  func damaged() throws {
    let backup = try BackupWithFiles()
    func payload(of file: (domain: String, path: String, text: String)) throws -> String {
      "b/\(try MBDBRecord.fileName(domain: file.domain, path: Array(file.path.utf8)))"
    }
    let messages = try payload(of: BackupWithFiles.files[0])
    let notes = try payload(of: BackupWithFiles.files[1])
    try backup.sandbox.devices.run("rm \(messages); printf Notes > \(notes)")
    let outcome = try backup.sandbox.keyhaul("export b --files out -q")
    #expect(outcome.status == 3 && outcome.output.isEmpty)
    #expect(outcome.errors.contains("warning: 1 file could not be read, and was not written"))
    #expect(outcome.errors.contains("warning: 1 file is not what was backed up"))
    #expect(outcome.errors.contains("\"HomeDomain/Library/notes.txt\""))
    #expect(try backup.exportedPaths(in: "out").count == 6)
    // With the original contents, a new export succeeds.
    try backup.sandbox.devices.run("printf messages > \(messages); printf notes > \(notes); rm -r out")
    try backup.sandbox.succeed("export b --files out -q")
  }

  @Test(
    "Contradicting flags are rejected, and folders with other files are not changed",
    arguments: [
      ("export b --files b/x", 64, "b/x is inside the input"),
      ("export b --files occupied", 64, "could not write occupied"),
      ("export b --files out -o x", 64, "--files and --output cannot be used together"),
      ("export b --files out --reveal", 64, "--files and --reveal cannot be used together"),
      ("export b --files out --service x", 64, "--files cannot be used with attributes of items"),
      ("export b --files out --format pem", 64, "the result has no pem format"),
      ("export b --files -", 64, "--files cannot be \"-\""), ("export b", 64, "keyhaul export needs --output PATH"),
      ("export b --files out --domain HomeDomian", 4, "b has no such file"),
      ("export b -o x --domain A --domain B", 64, "--domain is given twice"),
      ("export b --files out --password-file .bp", 14, "b has no password"),
    ])
  func refused(line: String, status: Int32, message: String) throws {
    let backup = try BackupWithFiles()
    try backup.sandbox.devices.run("mkdir occupied && touch occupied/other")
    let outcome = try backup.sandbox.keyhaul(line)
    #expect(outcome.status == status && outcome.errors.hasPrefix("error: \(message)"), "\(outcome.errors)")
    #expect(try backup.sandbox.names(in: "occupied") == ["other"])
    #expect(try !backup.sandbox.names().contains("out"))
  }

  @Test("After a killed export, the same command completes the folder (10 moments, 4 in a quick run)")
  func killed() throws {
    // 400 files in 7 domains, each with 13 folders.
    let files = (0..<400).map { number in
      (
        domain: "AppDomain-org.example.n\(number % 7)", path: "f/\(number % 13)/\(number)",
        text: String(repeating: "\(number) ", count: 3_000)
      )
    }
    let backup = try BackupWithFiles(files)
    let duration = try backup.sandbox.duration(of: "export b --files expected -q")
    var random = SeededRandom(seed: 14)
    for round in 0..<Cases.count(10, quick: 4) {
      try backup.sandbox.devices.run("rm -rf out")
      // Every second round kills two exports.
      for _ in 0...(round % 2) {
        let delay = Double.random(in: 0...duration, using: &random)
        try backup.sandbox.run("export b --files out -q", killedAfter: delay)
      }
      try backup.sandbox.succeed("export b --files out -q")
      let difference = try backup.sandbox.devices.run("diff -r expected out")
      #expect(difference.status == 0, "round \(round): \(difference.output)")
      #expect(try backup.sandbox.names(in: "out").sorted() == backup.sandbox.names(in: "expected").sorted())
    }
  }
}
