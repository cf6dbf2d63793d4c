import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Limits of reading backups")
struct LimitTests {
  /// Checks that the sample can be opened with a limit of the given value, and not with a limit of one less.
  private func expectLimit(
    _ value: Int, set: (inout BackupLimits, Int) -> Void, code: KeyhaulError.Code = .overLimit
  ) throws {
    let bytes = packed(try SampleBackup().storedFiles())
    var limits = BackupLimits()
    set(&limits, value)
    #expect(try failure(opening: bytes, limits: limits) == nil)
    set(&limits, value - 1)
    #expect(try failure(opening: bytes, limits: limits)?.code == code)
  }

  /// Returns the size of a file of the sample.
  private func byteCount(of path: String) throws -> Int {
    try #require(try SampleBackup().storedFiles()[path]).count
  }

  private func largestPropertyListByteCount() throws -> Int {
    let byteCounts = try ["Manifest.plist", "Status.plist", "Info.plist"].map(byteCount(of:))
    return try #require(byteCounts.max())
  }

  @Test("The number of entries is limited in a tar and in a zip")
  func entryCount() throws {
    // The sample has five files.
    try expectLimit(5) { $0.entryCount = $1 }
    var zip = ZipFixture()
    for file in try SampleBackup().storedFiles() { zip.add(file.path, file.bytes) }
    var limits = BackupLimits()
    limits.entryCount = 5
    #expect(try failure(opening: zip.finished(), limits: limits) == nil)
    limits.entryCount = 4
    #expect(try failure(opening: zip.finished(), limits: limits)?.code == .overLimit)
  }

  @Test("The largest claimed sizes do not overflow", arguments: [Int64.max, 1 << 62, 1 << 41])
  func largestClaims(size: Int64) throws {
    var limits = BackupLimits()
    limits.entryByteCount = .max
    limits.totalByteCount = .max
    var tar = TarFixture()
    for name in ["a", "b"] {
      tar.addExtended([("size", Array(String(size).utf8))])
      tar.add(name, [1])
    }
    let categories: [ErrorCategory] = [.damaged, .refused]
    let errorWithoutLimit = try #require(try failure(opening: tar.finished(), limits: limits))
    #expect(categories.contains(errorWithoutLimit.category))
    let errorWithStandardLimit = try #require(try failure(opening: tar.finished()))
    #expect(categories.contains(errorWithStandardLimit.category))
  }

  @Test("A name that exceeds the limit is rejected as hostile")
  func pathLength() throws {
    // The longest name is "51/" and the 40 digits of an identifier.
    try expectLimit(43, set: { $0.pathByteCount = $1 }, code: .hostile)
  }

  @Test("The size of an entry and the total size are limited")
  func entrySizes() throws {
    let sizes = try SampleBackup().storedFiles().map(\.bytes.count)
    try expectLimit(try #require(sizes.max())) { $0.entryByteCount = Int64($1) }
    try expectLimit(sizes.reduce(0, +)) { $0.totalByteCount = Int64($1) }
  }

  @Test("The sizes of files that are read into memory are limited")
  func filesInMemory() throws {
    try expectLimit(try byteCount(of: "Manifest.db")) { $0.databaseByteCount = $1 }
    try expectLimit(try byteCount(of: "51/\(KeychainPayload.fileIdentifier)")) { $0.keychainByteCount = $1 }
    try expectLimit(try largestPropertyListByteCount()) { $0.propertyListByteCount = $1 }
  }

  @Test(
    "The size of copied files is limited in any format, and no copy remains",
    arguments: ["folder/", "one.tar"])
  func copiedFiles(source: String) throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: BackupDestination(path: directory.path(source)))
    let archive = try BackupArchive.open(.path(directory.path(source)))
    let namesBefore = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    var limits = BackupLimits()
    // The source is opened with the standard limits, so only the copy can exceed this limit.
    limits.propertyListByteCount = try largestPropertyListByteCount()
    _ = try BackupRewriter(system: .real, limits: limits).convert(
      archive, at: directory.path(source), to: .file(directory.path("copy.tar"), .tar))
    try FileManager.default.removeItem(atPath: directory.path("copy.tar"))
    limits.propertyListByteCount -= 1
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter(system: .real, limits: limits).convert(
        archive, at: directory.path(source), to: .file(directory.path("copy.tar"), .tar))
    }
    #expect(error?.code == .overLimit)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == namesBefore)
  }

  @Test("The size of the manifest in a directory is limited")
  func manifestInDirectory() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("backup")))
    var limits = BackupLimits()
    limits.databaseByteCount = try byteCount(of: "Manifest.db")
    _ = try BackupArchive.open(.path(directory.path("backup")), limits: limits)
    limits.databaseByteCount -= 1
    let error = #expect(throws: KeyhaulError.self) {
      try BackupArchive.open(.path(directory.path("backup")), limits: limits)
    }
    #expect(error?.code == .overLimit)
  }

  @Test(
    "An Info.plist that is too large is copied unchanged", arguments: [true, false])
  func largeInfo(isDirectory: Bool) throws {
    let directory = try TemporaryDirectory()
    let source = directory.path(isDirectory ? "backup/" : "backup.tar")
    try SampleBackup().write(to: BackupDestination(path: source))
    var limits = BackupLimits()
    // Only Info.plist may exceed the limit, so it must be larger than Manifest.plist.
    var files = try SampleBackup.storedFiles()
    let info = [UInt8](repeating: UInt8(ascii: " "), count: try #require(files["Manifest.plist"]).count + 1)
    limits.propertyListByteCount = info.count - 1
    if isDirectory {
      try directory.write(info, to: "backup/Info.plist")
    } else {
      files["Info.plist"] = info
      try directory.write(packed(files), to: "backup.tar")
    }
    let archive = try BackupArchive.open(.path(source), limits: limits)
    #expect(archive.unreadablePropertyLists.map(\.name) == ["Info.plist"])
    for target in ["copy/", "copy.tar", "copy.zip"] {
      let rewriter = BackupRewriter(system: unsynced, limits: limits)
      _ = try rewriter.convert(archive, at: source, to: BackupDestination(path: directory.path(target)))
      let copy = try BackupArchive.open(.path(directory.path(target)))
      #expect(copy.parts[.info] == info && copy.digest == archive.digest, "\(target)")
    }
  }

  @Test("The maximum size of a keychain file in a container depends on the size of the container")
  func keychainInContainer() {
    let limits = BackupLimits()
    // The limit is 64 MiB and four times the size of the container, but at most 1 GiB.
    #expect(limits.keychainByteCount(inContainerOf: 0) == 64 << 20)
    #expect(limits.keychainByteCount(inContainerOf: 1 << 20) == 68 << 20)
    #expect(limits.keychainByteCount(inContainerOf: 500 << 20) == 1 << 30)
    #expect(limits.keychainByteCount(inContainerOf: .max) == 1 << 30)
    // The size of a stream is unknown.
    #expect(limits.keychainByteCount(inContainerOf: nil) == 256 << 20)
  }

  @Test("The size of an old manifest in a directory is limited")
  func oldManifest() throws {
    let directory = try TemporaryDirectory()
    try MBDBBackup(try SampleBackup(hasPassword: false)).write(to: directory, "old")
    let size = try directory.read("old/Manifest.mbdb").count
    for (limit, isOver) in [(size, false), (size - 1, true)] {
      var limits = BackupLimits()
      limits.oldDatabaseByteCount = limit
      var code: KeyhaulError.Code?
      do throws(KeyhaulError) {
        _ = try BackupArchive.open(.path(directory.path("old")), limits: limits).fileList()
      } catch { code = error.code }
      #expect(code == (isOver ? .overLimit : nil))
    }
    #expect(BackupLimits.standard.oldDatabaseByteCount == 256 << 20)
  }

  @Test("A seal that is too large is broken, and the other parts of the backup are read")
  func sealSize() throws {
    let directory = try TemporaryDirectory()
    // The seal of zeros is broken in any case. Only the reason tells whether it was too large.
    let seal = (path: "Keyhaul.seal", bytes: [UInt8](repeating: 0, count: 1000))
    try directory.write(packed(try SampleBackup().storedFiles() + [seal]), to: "packed.tar")
    for (limit, isOver) in [(1000, false), (999, true)] {
      var limits = BackupLimits()
      limits.sealByteCount = limit
      let archive = try BackupArchive.open(.path(directory.path("packed.tar")), limits: limits)
      let reasons = archive.findings.filter { $0.kind == .sealBroken }.map(\.fact)
      #expect(reasons.count == 1 && reasons.joined().contains("1,000 bytes (limit: 999)") == isOver, "\(reasons)")
    }
    #expect(BackupLimits.standard.sealByteCount == 256 << 20)
  }

  @Test("The total size of the files in memory is limited if a container has many directories with manifests")
  func manyManifests() throws {
    var tar = TarFixture()
    for index in 0..<20 { tar.add("f\(index)/Manifest.db", [UInt8](repeating: 0, count: 1000)) }
    // The total limit is the sum of the limits, with the keychain's counted twice and the property lists' three times:
    // here 20,000 bytes, as many as the entries have.
    var limits = BackupLimits()
    limits.databaseByteCount = 1000
    limits.oldDatabaseByteCount = 1000
    limits.keychainByteCount = 1000
    limits.sealByteCount = 1000
    limits.journalByteCount = 0
    limits.propertyListByteCount = 5000
    #expect(try failure(opening: tar.finished(), limits: limits)?.code == .notABackup)
    limits.propertyListByteCount = 4999
    #expect(try failure(opening: tar.finished(), limits: limits)?.code == .overLimit)
  }

  @Test("The decompressed size of a tar is limited", arguments: [ContainerFormat.gzippedTar, .zstandardTar])
  func expansion(format: ContainerFormat) throws {
    let bomb = StoredBackup(
      directoryName: "x", modificationTime: 0,
      files: [try StoredFile(path: "photo", bytes: [UInt8](repeating: 0, count: 1 << 20))])
    let directory = try TemporaryDirectory()
    _ = try BackupInstaller().place(bomb.outgoing, at: .file(directory.path("tar"), .tar), replace: false)
    _ = try BackupInstaller().place(bomb.outgoing, at: .file(directory.path("packed"), format), replace: false)
    let tarByteCount = try directory.read("tar").count
    let compressed = try directory.read("packed")
    var limits = BackupLimits()
    limits.expansionFactor = 10
    limits.decompressionAllowance = Int64(tarByteCount - 10 * compressed.count)
    #expect(try failure(opening: compressed, limits: limits)?.code == .notABackup)
    limits.decompressionAllowance -= 1
    #expect(try failure(opening: compressed, limits: limits)?.code == .overLimit)
  }

  @Test("The decompressed size of a zip is limited")
  func zipExpansion() throws {
    let fileByteCount = 1 << 20
    let bomb = StoredBackup(
      directoryName: "x", modificationTime: 0,
      files: [try StoredFile(path: "Manifest.plist", bytes: [UInt8](repeating: 0, count: fileByteCount))])
    let directory = try TemporaryDirectory()
    _ = try BackupInstaller().place(bomb.outgoing, at: .file(directory.path("zip"), .zip), replace: false)
    let compressed = try directory.read("zip")
    #expect(compressed.count < 10_000)
    var limits = BackupLimits()
    limits.expansionFactor = 10
    limits.decompressionAllowance = Int64(fileByteCount - 10 * compressed.count)
    #expect(try failure(opening: compressed, limits: limits)?.code != .overLimit)
    limits.decompressionAllowance -= 1
    #expect(try failure(opening: compressed, limits: limits)?.code == .overLimit)
  }
}
