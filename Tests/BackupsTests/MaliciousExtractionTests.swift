import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Extraction of malicious backups")
struct MaliciousExtractionTests {
  @Test("Nothing is written outside the folder: not by a name, as a link, or through a link", arguments: [true, false])
  func outsideFolder(isEncrypted: Bool) throws {
    let directory = try TemporaryDirectory()
    try directory.write(Array("keep".utf8), to: "victim/file")
    try directory.write(Array("keep".utf8), to: "escape.txt")
    let victimBefore = try tree(directory.path("victim"))
    let backup = try FileTreeBackup(Self.escapingFiles(victim: directory.path("victim")), isEncrypted: isEncrypted)
    try backup.write(to: directory)
    for _ in 0..<2 {
      let result = try ExtractionTests.extract(backup, directory)
      #expect(try tree(directory.path("victim")) == victimBefore)
      #expect(try directory.read("escape.txt") == Array("keep".utf8))
      let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
      #expect(names == ["backup", "escape.txt", "out", "victim"])
      #expect(result.faults == [.overLimit: 1, .hostile: 2])
      // Two of the eight links are written: "dir" leads to its own directory, and "own" to itself.
      #expect(result.linkCount == 2 && result.omissions == [.targetOutsideFolder: 6])
      #expect(result.fileCount == 12)
    }
    try checkExtractedFiles(in: directory)
  }

  /// Returns files and links whose names or targets are outside of the folder, or are used twice.
  private static func escapingFiles(victim: String) -> [FileTreeBackup.File] {
    [
      .text("../../escape.txt", "up"), .text("a/../../../escape.txt", "up"), .text("\(victim)/file", "absolute"),
      .text("..", "itself"), .text("x", "domain", in: ".."), .text("victim/file", "domain", in: "../victim"),
      .text("x", "domain", in: ""), .text("", "no name"),
      .link("out", to: "../../victim"), .text("out/file", "is behind a link or is not a regular file"),
      .link("absolute", to: victim), .text("absolute/file", "is behind a link or is not a regular file"),
      .link("dir", to: "."), .link("sly", to: "dir/../../../victim"), .link("root", to: "/"), .link("empty", to: ""),
      .text("late/file", "a directory first"), .link("late", to: "../../victim"),
      .init(path: "own", target: "own"),
      .text(String(repeating: "a/", count: 500_000) + "z", "a million parts"),
      .init(path: "another", content: [1], identifier: String(repeating: "a", count: 40)),
      .text("keyhaul-files.jsonl", "not the manifest", in: ".keyhaul-part"),
      .text("x", "not the manifest", in: "keyhaul-files.jsonl"),
    ]
  }

  private func checkExtractedFiles(in directory: TemporaryDirectory) throws {
    let written = try entries(in: directory, "out")
    #expect(written["HomeDomain/%2E%2E/%2E%2E/escape.txt"]?.hasSuffix(" up") == true)
    #expect(written["%2E%2E/x"]?.hasSuffix(" domain") == true && written["..%2Fvictim/victim/file"] != nil)
    #expect(written["HomeDomain/out/file"]?.hasSuffix("is behind a link or is not a regular file") == true)
    #expect(written["HomeDomain/out"] == "directory 700" && written["HomeDomain/late"] == "directory 700")
    // The targets of all written links are in the folder, even if they lead through other links.
    let root = directory.url("out").resolvingSymlinksInPath().path
    for (path, entry) in written where entry.hasPrefix("link") && !path.hasSuffix("own") {
      let target = directory.url("out/\(path)").resolvingSymlinksInPath().path
      #expect(target == root || target.hasPrefix(root + "/"), "\(path)")
    }
  }

  @Test("A link that replaced an extracted directory is not followed by the next run")
  func planted() throws {
    let directory = try TemporaryDirectory()
    try directory.write(Array("keep".utf8), to: "victim/file")
    let backup = try FileTreeBackup([.text("sub/file", "mine")])
    try backup.write(to: directory)
    try ExtractionTests.extract(backup, directory)
    try FileManager.default.removeItem(at: directory.url("out/HomeDomain/sub"))
    try FileManager.default.createSymbolicLink(
      at: directory.url("out/HomeDomain/sub"), withDestinationURL: directory.url("victim"))
    #expect(throws: KeyhaulError.self) { try ExtractionTests.extract(backup, directory) }
    #expect(try directory.read("victim/file") == Array("keep".utf8))
  }

  @Test("Names that some file systems do not distinguish get different and stable names")
  func collisions() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([
      .text("Case", "1"), .text("case", "2"), .text("CASE", "3"), .text("caf\u{E9}", "4"), .text("cafe\u{301}", "5"),
      .text("stra\u{DF}e", "6"), .text("STRASSE", "7"), .text("Folder/a", "8"), .text("folder/a", "9"),
      .text("file", "10"), .text("file/inside", "11"), .text("a%2Fb", "12"),
      .text(String(repeating: "l", count: 300), "13"), .text(String(repeating: "l", count: 301), "14"),
    ])
    try backup.write(to: directory)
    let result = try ExtractionTests.extract(backup, directory)
    let written = try entries(in: directory, "out")
    let contents = written.values.filter { $0.hasPrefix("file") }.compactMap { $0.split(separator: " ").last }
    #expect(Set(contents).count == 14 && result.fileCount == 14)
    let caseFoldedPaths = written.keys.map { $0.decomposedStringWithCanonicalMapping.lowercased() }
    #expect(Set(caseFoldedPaths).count == written.count)
    let names = written.keys.flatMap { path in path.split(separator: "/") }
    #expect(names.allSatisfy { $0.utf8.count <= 255 })
    let (casePaths, cafePaths, strassePaths, folderPaths, fileOrDirectoryPaths, longPaths) = (2, 1, 1, 1, 1, 2)
    #expect(
      result.renamedCount
        == casePaths + cafePaths + strassePaths + folderPaths + fileOrDirectoryPaths + longPaths)
    #expect(
      written["HomeDomain/Case"]?.hasSuffix(" 1") == true && written["HomeDomain/a%2Fb"]?.hasSuffix(" 12") == true)
    try ExtractionTests.extract(backup, directory, to: "again")
    #expect(try entries(in: directory, "again") == written)
  }

  @Test("Invalid sizes and times of files do not affect the extraction of other files")
  func invalidNumbers() throws {
    let directory = try TemporaryDirectory()
    let numbers: [Int64] = [.min, -1, 0, 1 << 40, .max]
    let files = numbers.flatMap { number in
      [
        FileTreeBackup.File(path: "size \(number)", content: Array("stored".utf8), size: number),
        FileTreeBackup.File(path: "time \(number)", content: Array("stored".utf8), modified: number),
        FileTreeBackup.File(path: "link \(number)", target: "size 0", modified: number),
        FileTreeBackup.File(path: "folder \(number)", modified: number),
      ]
    }
    let backup = try FileTreeBackup(files + [.text("ordinary", "ordinary")])
    try backup.write(to: directory)
    let result = try ExtractionTests.extract(backup, directory)
    // Each of the two records with a negative size is reported, and its file is not written.
    #expect(result.fileCount == 9 && result.faults == [.damaged: 2] && result.linkCount == 5)
    let written = try entries(in: directory, "out")
    #expect(written["HomeDomain/ordinary"] == "file 644 1600000000 ordinary")
    for number in numbers {
      #expect(written["HomeDomain/size \(number)"] == (number < 0 ? nil : "file 644 1600000000 stored"))
      #expect(written["HomeDomain/time \(number)"]?.hasSuffix(" stored") == true)
    }
  }

  @Test("Of rows with the same path, only the one with the correct identifier is written, and the others are reported")
  func samePath() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([
      .init(path: "file", content: [1], isStored: false, identifier: String(repeating: "b", count: 40)),
      .text("file", "true"),
      .init(path: "file", content: [1], isStored: false, identifier: String(repeating: "c", count: 40)),
    ])
    try backup.write(to: directory)
    let result = try ExtractionTests.extract(backup, directory)
    #expect(result.fileCount == 1 && result.faults == [.hostile: 2])
    #expect(try entries(in: directory, "out")["HomeDomain/file"] == "file 644 1600000000 true")
  }

  @Test("Rows without a valid identifier are counted and not written")
  func withoutIdentifier() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([
      .text("whole", "whole"), .init(path: "short", content: [1], identifier: "abc"),
      .init(path: "path", content: [1], identifier: "../../escape"),
    ])
    try backup.write(to: directory)
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    let fileList = try archive.fileList(with: archive.keybag.keys(SampleBackup.password))
    let plan = try ExtractionPlan(of: fileList, stored: archive.storedFiles(), selecting: { _ in true })
    #expect(plan.rowWithoutIdentifierCount == 2 && plan.fileCount == 1)
    let copy = try BackupRewriter(system: unsynced).decrypt(
      archive, at: directory.path("backup"), to: BackupDestination(path: directory.path("decrypted/")),
      keys: archive.keybag.keys(SampleBackup.password))
    #expect(copy.rowWithoutIdentifierCount == 2 && !copy.isComplete && copy.faults.isEmpty)
    #expect(try ExtractionTests.extract(backup, directory).fileCount == 1)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path(".")).sorted()
    #expect(names == ["backup", "decrypted", "out"])
  }

  @Test("The components of names are encoded for all file systems")
  func encodedNames() throws {
    let encodedNames = [
      "plain.txt": "plain.txt", "": "%2F", ".": "%2E", "..": "%2E%2E", "...": "...", "a/b": "a%2Fb", "100%": "100%",
      "bell\u{7}": "bell%07", "\u{1B}[2J": "%1B[2J", "del\u{7F}": "del%7F", "nul\0": "nul%00",
      "\u{202E}gpj.exe": "%E2%80%AEgpj.exe", "caf\u{E9}": "caf\u{E9}",
      "\u{1F468}\u{200D}\u{1F469}": "\u{1F468}\u{200D}\u{1F469}",
    ]
    for (name, encoded) in encodedNames { #expect(try SafeName.name(of: name) == encoded) }
  }

  @Test("A name of more than 255 bytes is shortened to whole characters, a tilde, and eight digits")
  func shortenedNames() throws {
    let longest = String(repeating: "x", count: 255)
    #expect(try SafeName.name(of: longest) == longest)
    // Characters of 1, 2, 3, and 4 bytes.
    for (character, byteCount) in [("x", 255), ("\u{E9}", 255), ("\u{20AC}", 255), ("\u{1F511}", 253)] {
      let name = try SafeName.name(of: String(repeating: character, count: 256))
      #expect(name.utf8.count == byteCount && name.dropLast(8).hasSuffix(character + "~"), "\(name)")
    }
    // 128 characters, but 256 bytes.
    #expect(try SafeName.name(of: String(repeating: "\u{E9}", count: 128)).utf8.count == 255)
  }

  @Test("A link is written only if its target is certainly in the folder")
  func links() {
    for target in ["a", "a/b", "./a", ".", "..", "../a", "../../a", "a/./b", "a//b"] {
      #expect(SymlinkPolicy.staysInside(target, depth: 2), "\(target)")
    }
    // A mark or a letter that joins a slash in a Swift `Character` does not hide it from the system.
    for target in [
      "", "/", "/a", "../../../a", "a/..", "a/../../b", "./../../../a", "a\0b", "/\u{308}a", "a\u{D4E}/..",
      "a\u{D4E}/../../b",
    ] {
      #expect(!SymlinkPolicy.staysInside(target, depth: 2), "\(target)")
    }
  }

  @Test("A link is written only if its target has less than 1,024 bytes")
  func linkTargetLength() {
    #expect(SymlinkPolicy.staysInside(String(repeating: "a", count: 1_023), depth: 1))
    #expect(!SymlinkPolicy.staysInside(String(repeating: "a", count: 1_024), depth: 1))
  }
}
