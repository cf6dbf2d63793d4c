import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

/// Some file systems change the case of names, and some tools move all files to one directory.
@Suite("Payloads at unusual paths")
struct RenamedPayloadTests {
  /// A change of a path such as `7d/7dfd...`.
  enum Naming: CaseIterable {
    case capitals, capitalFolder, capitalName, withoutFolder, capitalsWithoutFolder

    func path(_ path: String) -> String {
      let components = path.split(separator: "/").map(String.init)
      guard components.count == 2 else { return path }
      let (folder, name) = (components[0], components[1])
      return switch self {
      case .capitals: path.uppercased()
      case .capitalFolder: "\(folder.uppercased())/\(name)"
      case .capitalName: "\(folder)/\(name.uppercased())"
      case .withoutFolder: name
      case .capitalsWithoutFolder: name.uppercased()
      }
    }
  }

  private typealias Files = [(path: String, bytes: [UInt8])]

  private func write(_ files: Files, to directory: TemporaryDirectory, as name: String) throws {
    switch name {
    case _ where name.hasSuffix(".tar"):
      var tar = TarFixture()
      for file in files { tar.add("udid/\(file.path)", file.bytes) }
      try directory.write(tar.finished(), to: name)
    case _ where name.hasSuffix(".zip"):
      var zip = ZipFixture()
      for file in files { zip.add(file.path, file.bytes) }
      try directory.write(zip.finished(), to: name)
    default: for file in files { try directory.write(file.bytes, to: "\(name)/\(file.path)") }
    }
  }

  private func open(_ directory: TemporaryDirectory, _ name: String) throws -> BackupArchive {
    try BackupArchive.open(.path(directory.path(name)))
  }

  /// Two files in addition to those of the sample.
  private static let additionalFiles: Files = [
    ("7d/7dfdab5d912e63acbc583d14f05caf934d459f6a", Array("a file".utf8)),
    ("ab/ab00000000000000000000000000000000000000", Array("another".utf8)),
  ]

  private func files(_ sample: borrowing SampleBackup) throws -> Files {
    try sample.storedFiles() + Self.additionalFiles
  }

  /// Creates a directory with the sample and the additional files at usual paths in `original`, and at unusual paths in
  /// a destination.
  private func makeDirectory(
    _ sample: borrowing SampleBackup, _ naming: Naming, _ destination: String
  ) throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    let files = try files(sample)
    try write(files, to: directory, as: "original")
    try write(files.map { (naming.path($0.path), $0.bytes) }, to: directory, as: destination)
    return directory
  }

  @Test(
    "Payloads at unusual paths are found in any format, and are reported",
    arguments: Naming.allCases, ["b", "b.tar", "b.zip"])
  func found(naming: Naming, destination: String) throws {
    let sample = try SampleBackup()
    let directory = try makeDirectory(sample, naming, destination)
    let original = try open(directory, "original")
    let originalPayloads = try original.storedFiles()
    #expect(originalPayloads.finding == nil && original.anomalies == [])

    let archive = try open(directory, destination)
    #expect(archive.digest == original.digest && archive.hasKeychain)
    let payloads = try archive.storedFiles()
    #expect(payloads == originalPayloads)
    #expect(payloads.count == 3 && payloads.byteCount == originalPayloads.byteCount)
    // The name of the directory 51 has no letters, so `capitalFolder` does not change it.
    let renamedFiles = try files(sample).filter { naming.path($0.path) != $0.path }
    let newPaths = renamedFiles.map { naming.path($0.path) }.sorted()
    #expect(payloads.finding == .payloadsRenamed(count: newPaths.count, unread: 0, first: newPaths[0]))
    // When a directory is opened, only its keychain file is looked for, whose path `capitalFolder` does not change.
    #expect(archive.anomalies.isEmpty == (destination == "b" && naming == .capitalFolder))
  }

  @Test(
    "The contents of payloads at unusual paths can be read",
    arguments: Naming.allCases, ["b", "b.tar", "b.zip"])
  func contents(naming: Naming, destination: String) throws {
    let sample = try SampleBackup()
    let directory = try makeDirectory(sample, naming, destination)
    let archive = try open(directory, destination)
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    for file in Self.additionalFiles {
      let identifier = String(file.path.dropFirst(3))
      var bytes: [UInt8] = []
      #expect(try archive.payload(named: identifier).forEachChunk { bytes += $0 })
      #expect(bytes == file.bytes)
    }
    var contents: [String: [UInt8]] = [:]
    try archive.forEachPayload(of: try archive.storedFiles()) { (payload) throws(KeyhaulError) in
      _ = try payload.forEachChunk { contents[payload.fileIdentifier, default: []] += $0 }
    }
    #expect(contents.count == 3 && contents["7dfdab5d912e63acbc583d14f05caf934d459f6a"] == Array("a file".utf8))
  }

  @Test(
    "A copy of a backup with unusual paths has the usual paths",
    arguments: Naming.allCases, ["b", "b.tar", "b.zip"])
  func copied(naming: Naming, destination: String) throws {
    let sample = try SampleBackup()
    let directory = try makeDirectory(sample, naming, destination)
    let archive = try open(directory, destination)
    let rewriter = BackupRewriter(system: unsynced)
    let copy = try rewriter.convert(archive, at: directory.path(destination), to: .directory(directory.path("copy")))
    let fileCount = try files(sample).count
    #expect(copy.unrelatedFiles.isEmpty && copy.fileCount == fileCount)
    #expect(try tree(directory.path("copy")) == tree(directory.path("original")))
    let existing = try rewriter.existingCopy(
      of: archive, at: directory.path(destination), in: directory.path("copy"), as: .directory(directory.path("copy")))
    #expect(existing != nil)
  }

  @Test("Payloads are sealed with their usual paths", arguments: Naming.allCases, ["b", "b.tar"])
  func sealed(naming: Naming, destination: String) throws {
    let sample = try SampleBackup(hasPassword: false)
    let directory = try makeDirectory(sample, naming, destination)
    let fileCount = try files(sample).count
    let rewriter = BackupRewriter(system: unsynced)
    for name in ["original", destination] {
      #expect(try rewriter.seal(open(directory, name), at: directory.path(name), keys: nil) == fileCount)
    }
    let original = try open(directory, "original")
    let archive = try open(directory, destination)
    #expect(archive.parts[.seal] == original.parts[.seal] && archive.seal?.violations == [])
    let verifier = try #require(try SealVerifier(archive))
    try archive.forEachPayload(of: try archive.storedFiles()) { (payload) throws(KeyhaulError) in
      let path = archive.layout.storedPath(of: payload.fileIdentifier)
      verifier.compare(try PayloadHasher().entry(of: payload, at: path))
    }
    verifier.finish()
    #expect(verifier.violations == [])
  }

  @Test("A file at an unusual path is not used if the usual path exists")
  func bothNames() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    try write(files(sample), to: directory, as: "b")
    let nameWithoutFolder = String(Self.additionalFiles[0].path.dropFirst(3))
    try directory.write([1], to: "b/\(nameWithoutFolder)")
    try directory.write([2], to: "b/\(MetadataFile.keychainFileIdentifier)")
    let archive = try open(directory, "b")
    #expect(archive.anomalies == [])
    let stored = try archive.storedFiles()
    #expect(stored.byteCount(of: nameWithoutFolder) == 6 && stored.count == 3)
    #expect(
      stored.finding == .payloadsRenamed(count: 0, unread: 2, first: "51a4616e576dd33cd2abadfea874eb8ff246bf0e"))
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    let copy = try BackupRewriter(system: unsynced)
      .convert(archive, at: directory.path("b"), to: .directory(directory.path("copy")))
    #expect(copy.unrelatedFiles == [MetadataFile.keychainFileIdentifier, nameWithoutFolder])
    #expect(try open(directory, "copy").storedFiles().finding == nil)
  }

  @Test("Ambiguous files at unusual paths are not used", arguments: ["b", "b.tar"])
  func ambiguous(destination: String) throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    // Each payload has files at two unusual paths, with different contents.
    let files = try files(sample).flatMap { file -> Files in
      let isPayload = isFileIdentifier(String(file.path.dropFirst(3)))
      guard isPayload else { return [file] }
      return [(Naming.withoutFolder.path(file.path), [1]), (Naming.capitalName.path(file.path), [2])]
    }
    try write(files, to: directory, as: destination)
    let archive = try open(directory, destination)
    #expect(!archive.hasKeychain)
    let stored = try archive.storedFiles()
    #expect(stored.count == 0 && stored.byteCount == 0)
    #expect(
      stored.finding
        == .payloadsRenamed(count: 0, unread: 6, first: "51/51A4616E576DD33CD2ABADFEA874EB8FF246BF0E"))
    var count = 0
    try archive.forEachPayload(of: stored) { _ in count += 1 }
    let isFound = try archive.payload(named: "7dfdab5d912e63acbc583d14f05caf934d459f6a").forEachChunk { _ in }
    #expect(count == 0 && !isFound)
    let copy = try BackupRewriter(system: unsynced)
      .convert(archive, at: directory.path(destination), to: .directory(directory.path("copy")))
    #expect(copy.unrelatedFiles.count == 6)
  }

  @Test("Links at unusual paths are not followed")
  func links() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    // The paths of payloads are longer.
    try write(files(sample).filter { $0.path.count < 40 }, to: directory, as: "b")
    for file in Self.additionalFiles { try directory.write(file.bytes, to: "elsewhere/\(file.path)") }
    let secret = directory.path("elsewhere/\(Self.additionalFiles[0].path)")
    for (link, target) in [
      ("7DFDAB5D912E63ACBC583D14F05CAF934D459F6A", secret), ("AB", directory.path("elsewhere/ab")),
      (MetadataFile.keychainFileIdentifier.uppercased(), secret),
    ] {
      try FileManager.default.createSymbolicLink(atPath: directory.path("b/\(link)"), withDestinationPath: target)
    }
    let archive = try open(directory, "b")
    let stored = try archive.storedFiles()
    #expect(stored.count == 0 && stored.finding == nil && !archive.hasKeychain)
    for file in Self.additionalFiles {
      #expect(try !archive.payload(named: String(file.path.dropFirst(3))).forEachChunk { _ in })
    }
    let copy = try BackupRewriter(system: unsynced)
      .convert(archive, at: directory.path("b"), to: .directory(directory.path("copy")))
    #expect(copy.unrelatedFiles.count == 3)
  }

  @Test(
    "Payloads of iOS 4 to 9 are found if their names are in upper case, or if they are in directories as in iOS 10",
    arguments: [true, false], ["b", "b.tar"])
  func oldLayout(isInFolders: Bool, destination: String) throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    let files = try MBDBBackup(sample).files
    try write(files, to: directory, as: "original")
    let renamed = files.map { file in
      guard isFileIdentifier(file.path) else { return file }
      return (isInFolders ? "\(file.path.prefix(2))/\(file.path)" : file.path.uppercased(), file.bytes)
    }
    try write(renamed, to: directory, as: destination)
    let original = try open(directory, "original")
    let archive = try open(directory, destination)
    #expect(archive.layout == .mbdb && archive.digest == original.digest)
    #expect(try archive.storedFiles() == original.storedFiles() && archive.storedFiles().finding != nil)
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    _ = try BackupRewriter(system: unsynced)
      .convert(archive, at: directory.path(destination), to: .directory(directory.path("copy")))
    #expect(try tree(directory.path("copy")) == tree(directory.path("original")))
  }

  @Test("Payloads that an updated device left with its old manifest are not reported as renamed")
  func leftover() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    try write(files(sample), to: directory, as: "b")
    let oldPayload = MBDBBackup.identifier("HomeDomain", MBDBBackup.notePath)
    let leftovers = try MBDBBackup(sample).files.filter { $0.path == "Manifest.mbdb" || $0.path == oldPayload }
    try write(leftovers, to: directory, as: "b")
    for destination in ["b", "b.tar"] {
      let archive = try open(directory, destination)
      let stored = try archive.storedFiles()
      #expect(stored.count == 3 && stored.finding == nil && archive.anomalies == [])
      guard destination == "b" else { continue }
      // The container is opened in the next iteration. It has the leftovers too, because a copy keeps them.
      let copy = try BackupRewriter(system: unsynced).convert(
        archive, at: directory.path("b"), to: BackupDestination(path: directory.path("b.tar")))
      #expect(copy.unrelatedFiles.isEmpty)
    }
  }

  @Test("A decrypted copy has the usual paths", arguments: Naming.allCases)
  func decrypted(naming: Naming) throws {
    let directory = try TemporaryDirectory()
    try FileTreeBackup([.text("a", "first"), .text("b", "second")]).write(to: directory, as: "original")
    for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path("original")) {
      var isDirectory: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: directory.path("original/\(path)"), isDirectory: &isDirectory)
      if !isDirectory.boolValue {
        try directory.write(try directory.read("original/\(path)"), to: "b/\(naming.path(path))")
      }
    }
    let archive = try open(directory, "b")
    let written = try BackupRewriter(system: unsynced).decrypt(
      archive, at: directory.path("b"), to: .directory(directory.path("decrypted")),
      keys: archive.keybag.keys(SampleBackup.password))
    #expect(written.decryptedCount == 2 && written.isComplete && written.copy.unrelatedFiles.isEmpty)
    let copy = try open(directory, "decrypted")
    #expect(try copy.storedFiles().finding == nil && copy.storedFiles().count == 2)
  }
}
