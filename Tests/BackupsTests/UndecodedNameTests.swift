import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

/// Names from published readers: bytes F5 and BA in a path of KeyboardDomain.
///
/// Sources: jfarley248/iTunes_Backup_Reader#21, abrignoni/iLEAPP#740.
@Suite("Names in a manifest that are not UTF-8")
struct UndecodedNameTests {
  /// A path in which U+F7F5 stands for the byte F5.
  private static let undecodedPath = "Library/abc\u{F7F5}\u{F7BA}.dat"

  /// Returns the lines of the list of extracted files.
  private func extractedFileLines(in directory: TemporaryDirectory) throws -> [JSONValue] {
    var lines: [JSONValue] = []
    try ExtractedFiles.forEachLine(ofManifest: directory.path("out/keyhaul-files.jsonl")) { lines.append($0) }
    return lines
  }

  @Test("A path in Manifest.db that is not UTF-8 is listed, found, and written under an escaped name")
  func database() throws {
    for isEncrypted in [true, false] {
      let directory = try TemporaryDirectory()
      let backup = try FileTreeBackup(
        [.text("a", "first"), .text(Self.undecodedPath, "odd")], isEncrypted: isEncrypted)
      try backup.write(to: directory)
      let result = try ExtractionTests.extract(backup, directory)
      #expect(result.fileCount == 2 && result.isComplete && result.renamedCount == 1)
      #expect(try directory.read("out/HomeDomain/Library/abc%F5%BA.dat") == Array("odd".utf8))
      let line = try #require(try extractedFileLines(in: directory).first { $0["relative_path_bytes"] != nil })
      #expect(line["relative_path_bytes"]?.stringValue == "4c6962726172792f616263f5ba2e646174")
      #expect(line["path"]?.stringValue == "HomeDomain/Library/abc%F5%BA.dat" && line["domain_bytes"] == nil)
      // A repeated extraction keeps the file.
      #expect(try ExtractionTests.extract(backup, directory).keptCount == 2)
    }
  }

  @Test("Names that are not UTF-8 are a finding that does not prevent any use")
  func finding() throws {
    let directory = try TemporaryDirectory()
    let files = [
      FileTreeBackup.File.text("a", "first"), .text(Self.undecodedPath, "odd"),
      .text("x", "of a domain", in: "D\u{F7FF}"),
    ]
    try FileTreeBackup(files, isEncrypted: false).write(to: directory)
    let fileList = try BackupArchive.open(.path(directory.path("backup"))).fileList()
    #expect(fileList.findings.isEmpty)
    let listing = try fileList.listing()
    #expect(listing.inconsistentRowCount == 0 && listing.rowCountByDomain == ["HomeDomain": 2, "D%FF": 1])
    let finding = try #require(fileList.findings.first)
    #expect(
      finding == .listNamesNotUTF8(name: "Manifest.db", count: 2, first: "HomeDomain/Library/abc%F5%BA.dat"))
    #expect(!finding.isDamage && !BackupPurpose.allCases.contains { finding.blocks($0) })
  }

  @Test("Names with the same escapes are written to different files and folders")
  func collisions() throws {
    let directory = try TemporaryDirectory()
    let names = ["n\u{F7F5}", "n%F5", "n%25\u{F7F5}", "n%\u{F7F5}", "d\u{F7F5}/x", "d%F5/x", "d\u{F7F6}/x"]
    let files =
      names.map { FileTreeBackup.File.text($0, $0) } + [
        .text("x", "odd", in: "D\u{F7F5}"), .text("x", "plain", in: "D%F5"),
      ]
    let backup = try FileTreeBackup(files, isEncrypted: false)
    try backup.write(to: directory)
    #expect(try ExtractionTests.extract(backup, directory).fileCount == 9)
    let lines = try extractedFileLines(in: directory)
    let paths = Set(lines.compactMap { $0["path"]?.stringValue })
    #expect(paths.count == 9)
    for line in lines {
      let path = try #require(line["path"]?.stringValue)
      let identifier = try #require(line["file_id"]?.stringValue)
      let file = try #require(
        files.first { SHA1.hash(FileTreeBackup.bytes("\($0.domain)-\($0.path)")).hex == identifier })
      #expect(try directory.read("out/\(path)") == file.content)
    }
    // Each of the five files named "x" is in its own folder.
    let foldersOfX = paths.filter { $0.hasSuffix("/x") }.map { $0.dropLast("/x".count) }
    #expect(Set(foldersOfX).count == 5)
  }

  @Test("A path in Manifest.mbdb that is not UTF-8 does not affect other records or the keychain")
  func oldManifest() throws {
    let sample = try SampleBackup(hasPassword: true)
    let directory = try TemporaryDirectory()
    let archive = try openOldBackup(sample, in: directory)
    let fileList = try archive.fileList()
    let listing = try fileList.listing(against: try archive.storedFiles())
    #expect(listing.fileCount == 4 && listing.linkCount == 1)
    #expect(listing.missingCount == 0 && listing.inconsistentRowCount == 0)
    #expect(
      fileList.findings
        == [.listNamesNotUTF8(name: "Manifest.mbdb", count: 1, first: "HomeDomain/Library/abc%F5%BA.dat")])
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
  }

  /// Creates a backup of iOS 9 with a path that is not UTF-8.
  private func openOldBackup(
    _ sample: borrowing SampleBackup, in directory: TemporaryDirectory
  ) throws -> BackupArchive {
    try MBDBBackup(sample, additionalPaths: [Self.undecodedPath]).write(to: directory, "backup")
    return try BackupArchive.open(.path(directory.path("backup")))
  }

  @Test("A path in Manifest.mbdb that is not UTF-8 is found by its displayed name only if this is requested")
  func displayedName() throws {
    let directory = try TemporaryDirectory()
    let fileList = try openOldBackup(try SampleBackup(hasPassword: true), in: directory).fileList()
    #expect(
      try fileList.files(shownAs: "HomeDomain", "Library/abc%F5%BA.dat").map(\.undecodedPath)
        == [FileTreeBackup.bytes(Self.undecodedPath)])
    #expect(try fileList.files(shownAs: "HomeDomain", MBDBBackup.notePath).isEmpty)
    #expect(try fileList.file(domain: "HomeDomain", relativePath: "Library/abc%F5%BA.dat") == nil)
  }

  @Test("A file of an old backup with a path that is not UTF-8 is extracted")
  func extractedFromOldBackup() throws {
    let directory = try TemporaryDirectory()
    let archive = try openOldBackup(try SampleBackup(hasPassword: true), in: directory)
    let fileList = try archive.fileList()
    let plan = try ExtractionPlan(of: fileList, stored: archive.storedFiles(), selecting: { _ in true })
    let result = try FileExtractor(system: unsynced).extract(
      .init(plan, selection: "all", into: directory.path("out")), from: archive, list: fileList,
      keys: archive.keybag.keys(SampleBackup.password), progress: { _, _ in true })
    #expect(result.fileCount == 4 && result.isComplete)
    #expect(try directory.read("out/HomeDomain/Library/abc%F5%BA.dat") == Array(Self.undecodedPath.utf8))
  }
}
