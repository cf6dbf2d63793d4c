import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@Suite("Conversion of backups")
struct ConversionTests {
  static let destinations = ["c/", "c.tar", "c.tar.gz", "c.tar.zst", "c.zip", "noextension"]
  static let destinationPairs = destinations.flatMap { first in destinations.map { second in (first, second) } }
  static let faults: [FileSystem.InjectedFault] = [.failure(.noSpace), .failure(.ioError), .short]

  private func convert(
    _ directory: TemporaryDirectory, _ source: String, to target: String, replace: Bool = false,
    system: FileSystem = unsynced
  ) throws -> RewrittenBackup {
    let archive = try BackupArchive.open(.path(directory.path(source)))
    return try BackupRewriter(system: system).convert(
      archive, at: directory.path(source), to: BackupDestination(path: directory.path(target)), replace: replace)
  }

  @Test(
    "Converting a backup to another format and back preserves all files and the digest (12 of 36 pairs in a quick run)",
    arguments: Cases.chosen(destinationPairs, quick: 12))
  func roundTrip(firstDestination: String, secondDestination: String) throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    let filesBefore = try bytes(in: directory, "backup")
    let digest = try BackupArchive.open(.path(directory.path("backup"))).digest
    let outcome = try convert(directory, "backup", to: firstDestination)
    #expect(outcome.fileCount == filesBefore.count && outcome.unrelatedFiles.isEmpty)
    #expect(try BackupArchive.open(.path(directory.path(firstDestination))).digest == digest)
    try FileManager.default.createDirectory(atPath: directory.path("two"), withIntermediateDirectories: true)
    _ = try convert(directory, firstDestination, to: "two/" + secondDestination)
    _ = try convert(directory, "two/" + secondDestination, to: "back/")
    #expect(try bytes(in: directory, "back") == filesBefore)
    #expect(try BackupArchive.open(.path(directory.path("back"))).digest == digest)
  }

  @Test(
    "The progress of a conversion includes all bytes, and the existing copy is recognized", arguments: ["c.tar", "c/"])
  func everyByte(target: String) throws {
    let directory = try TemporaryDirectory()
    try SampleBackup(hasPassword: true).write(to: .directory(directory.path("backup")))
    let source = directory.path("backup")
    let path = directory.path(target)
    let destination = BackupDestination(path: path)
    let archive = try BackupArchive.open(.path(source))
    #expect(archive.seal != nil)
    let byteCount = Int64(try bytes(in: directory, "backup").values.reduce(0) { $0 + $1.count })
    var reported: (done: Int64, total: Int64) = (0, 0)
    let progress: BackupRewriter.Progress = { done, total in
      reported = (done, total)
      return true
    }
    let rewriter = BackupRewriter()
    #expect(try rewriter.existingCopy(of: archive, at: source, in: path, as: destination) == nil)
    let written = try rewriter.convert(archive, at: source, to: destination, progress: progress)
    #expect(reported == (byteCount, byteCount))
    let existing = try rewriter.existingCopy(of: archive, at: source, in: path, as: destination, progress: progress)
    #expect(existing?.byteCount == written.byteCount && existing?.fileCount == written.fileCount)
    #expect(reported == (2 * byteCount, 2 * byteCount))
    let otherFormat = BackupDestination.file(path, .zip)
    #expect(try rewriter.existingCopy(of: archive, at: source, in: path, as: otherFormat) == nil)
  }

  @Test("A conversion stores encrypted backups and compresses unencrypted ones", arguments: ["c.zip", "c.tar.gz"])
  func compression(target: String) throws {
    for hasPassword in [true, false] {
      let directory = try TemporaryDirectory()
      try SampleBackup(hasPassword: hasPassword).write(to: .directory(directory.path("backup")))
      let files = try bytes(in: directory, "backup").values
      let byteCount = files.reduce(0) { $0 + $1.count }
      let digest = try BackupArchive.open(.path(directory.path("backup"))).digest
      _ = try convert(directory, "backup", to: target)
      try SampleBackup(hasPassword: hasPassword).write(to: BackupDestination(path: directory.path("new-\(target)")))
      for container in [target, "new-\(target)"] {
        let isLargerThanFiles = try directory.read(container).count > byteCount
        #expect(isLargerThanFiles == hasPassword, "\(container) with \(hasPassword ? "a" : "no") password")
        #expect(try BackupArchive.open(.path(directory.path(container))).digest == digest)
      }
      guard hasPassword, target.hasSuffix("zip") else { continue }
      let packed = Data(try directory.read(target))
      for file in files { #expect(packed.firstRange(of: Data(file)) != nil) }
    }
  }

  /// A name that ends with `/t` is a file in an unrelated directory. Only the directory is reported.
  @Test(
    "A conversion never deletes unrelated files in the backup that it replaces",
    arguments: ["photo.jpg", "51/a.jpg", "n/t", "Manifest.mbdx/t", "51/51\(String(repeating: "a", count: 38))/t"])
  func unrelatedInTarget(name: String) throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    _ = try convert(directory, "backup", to: "target/")
    // Files of file browsers are ignored.
    for litter in [".DS_Store", "51/._a"] { try directory.write([1], to: "target/\(litter)") }
    _ = try convert(directory, "backup", to: "target/", replace: true)
    try directory.write([1, 2], to: "target/\(name)")
    let error = try #require(throws: KeyhaulError.self) {
      try convert(directory, "backup", to: "target/", replace: true)
    }
    let reportedName = name.hasSuffix("/t") ? String(name.dropLast(2)) : name
    #expect(error.code == .occupied)
    #expect(error.reason == "\"target\" holds \"\(reportedName)\", which is not part of a backup")
    #expect(try BackupDirectory.unrelatedFiles(in: directory.path("target")) == [reportedName])
    #expect(try directory.read("target/\(name)") == [1, 2])
  }

  @Test("A conversion omits files that are not part of the backup, and reports them")
  func unrelated() throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    let backupFiles = try bytes(in: directory, "backup")
    for name in ["note.txt", "zz/x", "51/notes", "Snapshot/Manifest.plist", ".DS_Store"] {
      try directory.write([1], to: "backup/\(name)")
    }
    let outcome = try convert(directory, "backup", to: "c.tar")
    #expect(outcome.unrelatedFiles == [".DS_Store", "51/notes", "Snapshot", "note.txt", "zz"])
    _ = try convert(directory, "c.tar", to: "back/")
    #expect(try bytes(in: directory, "back") == backupFiles)
  }

  @Test("The conversion of a tar reports the entries that are not part of the backup")
  func unrelatedInTar() throws {
    let directory = try TemporaryDirectory()
    var tar = TarFixture()
    for file in try UnencryptedBackupFixture().stored() { tar.add("b/" + file.path, file.bytes) }
    tar.add("other/x", [1])
    tar.add("b/note", [1])
    try directory.write(tar.finished(), to: "mixed.tar")
    #expect(try convert(directory, "mixed.tar", to: "c.zip").unrelatedFiles == ["other/x", "b/note"])
  }

  @Test("A conversion does not replace a destination without permission", arguments: ["c/", "c.tar", "c.zip"])
  func occupied(target: String) throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    try SampleBackup().write(to: BackupDestination(path: directory.path(target)))
    let treeBefore = try tree(directory.path)
    let error = #expect(throws: KeyhaulError.self) { try convert(directory, "backup", to: target) }
    #expect(error?.code == .occupied)
    #expect(try tree(directory.path) == treeBefore)
    _ = try convert(directory, "backup", to: target, replace: true)
    let digest = try BackupArchive.open(.path(directory.path("backup"))).digest
    #expect(try BackupArchive.open(.path(directory.path(target))).digest == digest)
  }

  @Test("A backup of iOS 4 to 9 is converted unchanged")
  func oldLayout() throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    // An MBDB manifest has a magic number, the version 5.0, and here no records.
    let manifest = Array("mbdb".utf8) + [5, 0]
    let payloadName = String(repeating: "ab", count: 20)
    try FileManager.default.removeItem(atPath: directory.path("backup/Manifest.db"))
    try directory.write(manifest, to: "backup/Manifest.mbdb")
    try directory.write([1, 2, 3], to: "backup/\(payloadName)")
    _ = try convert(directory, "backup", to: "c.zip")
    _ = try convert(directory, "c.zip", to: "back/")
    #expect(try directory.read("back/\(payloadName)") == [1, 2, 3])
    #expect(try directory.read("back/Manifest.mbdb") == manifest)
  }

  @Test("A conversion refuses a backup with a link as a payload")
  func link() throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    let payloadName = String(repeating: "5", count: 40)
    try FileManager.default.createDirectory(atPath: directory.path("backup/55"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("backup/55/\(payloadName)"), withDestinationPath: "/etc/passwd")
    let error = #expect(throws: KeyhaulError.self) { try convert(directory, "backup", to: "c.tar") }
    #expect(error?.code == .hostile)
    #expect(!FileManager.default.fileExists(atPath: directory.path("c.tar")))
  }

  @Test(
    "A conversion is complete or has no effect, whichever system call fails (a third of the calls in a quick run)",
    arguments: [("backup", "c.tar.gz"), ("s.zip", "c/")], faults)
  func everyCall(paths: (source: String, target: String), fault: FileSystem.InjectedFault) throws {
    let sample = try SampleBackup()
    for call in fault.calls(among: Self.faults) {
      let directory = try TemporaryDirectory()
      try sample.write(to: .directory(directory.path("backup")), system: unsynced)
      try sample.write(to: .file(directory.path("s.zip"), .zip), system: unsynced)
      let treeBefore = try tree(directory.path)
      let failing = SingleFault(at: call, fault)
      var failed = false
      do {
        _ = try convert(directory, paths.source, to: paths.target, system: failing.system)
      } catch let error as KeyhaulError {
        failed = true
        #expect([.noSpace, .unwritable, .unreadable, .changed].contains(error.code), "call \(call): \(error)")
      }
      if failed {
        #expect(try tree(directory.path) == treeBefore, "call \(call)")
      } else {
        let digest = try BackupArchive.open(.path(directory.path(paths.source))).digest
        #expect(try BackupArchive.open(.path(directory.path(paths.target))).digest == digest)
      }
      // The conversion made fewer calls, so the fault was injected into all of them.
      if failing.callCount < call { break }
    }
  }

  @Test("An interrupted conversion leaves no files")
  func interrupted() throws {
    let directory = try TemporaryDirectory()
    try UnencryptedBackupFixture().write(to: directory)
    let treeBefore = try tree(directory.path)
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    for target in ["c/", "c.tar.zst"] {
      let error = #expect(throws: KeyhaulError.self) {
        _ = try BackupRewriter().convert(
          archive, at: directory.path("backup"), to: BackupDestination(path: directory.path(target))
        ) { done, total in done < total / 2 }
      }
      #expect(error?.code == .interrupted)
      #expect(try tree(directory.path) == treeBefore)
    }
  }
}
