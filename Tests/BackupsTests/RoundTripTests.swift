import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Reading written backups")
struct RoundTripTests {
  @Test(
    "A backup in a directory and any container has the same keychain and the same digest", arguments: [true, false])
  func everyContainer(hasPassword: Bool) throws {
    let sample = try SampleBackup(hasPassword: hasPassword)
    let directory = try TemporaryDirectory()
    var digests: Set<String> = []
    for name in ["folder/", "one.tar", "one.tar.gz", "one.tar.zst", "one.zip", "noextension"] {
      let destination = directory.path(name)
      let outcome = try sample.write(to: BackupDestination(path: destination))
      #expect(outcome.path == destination)
      let archive = try BackupArchive.open(.path(destination))
      let keychain = try archive.keychainFile(with: sample.keys)
      #expect(try keychain.bytes == sample.contents.keychainFile)
      #expect(keychain.file.keybagUUID == sample.contents.keybag.uuidText)
      #expect(keychain.anomalies.isEmpty)
      #expect(archive.isEncrypted == hasPassword)
      #expect(archive.hasKeychain)
      #expect(archive.device == sample.contents.device)
      #expect(archive.date == SampleBackup.date)
      #expect(archive.wasPasscodeSet == true)
      #expect(archive.status?.snapshotState == "finished")
      #expect(archive.keybag == sample.contents.keybag)
      #expect(try archive.storedFiles().count == 1)
      #expect(try archive.storedFiles().byteCount == Int64(storedKeychainByteCount(sample.contents, hasPassword)))
      digests.insert(archive.digest)
    }
    #expect(digests.count == 1)
    let digest = try #require(digests.first)
    #expect(digest.hasPrefix("sha256:") && digest.utf8.count == 71)
  }

  /// Returns the size of the keychain file. If it is encrypted, it has 1 to 16 more bytes of PKCS#7 padding.
  private func storedKeychainByteCount(_ contents: BackupContents, _ isEncrypted: Bool) throws -> Int {
    let byteCount = try contents.keychainFile.count
    return isEncrypted ? byteCount + 16 - byteCount % 16 : byteCount
  }

  @Test("A backup can be written to and read from a pipe as a tar")
  func throughAPipe() throws {
    let sample = try SampleBackup()
    let pipe = Pipe()
    let outcome = try sample.write(to: .stream(descriptor: pipe.fileHandleForWriting.fileDescriptor))
    try pipe.fileHandleForWriting.close()
    #expect(outcome.path == nil)
    let archive = try BackupArchive.open(.stream(descriptor: pipe.fileHandleForReading.fileDescriptor))
    let bytes = try archive.keychainFile(with: sample.keys).bytes
    #expect(try bytes == sample.contents.keychainFile)
  }

  @Test("A container can have its files in a directory, after ./, or at the top")
  func leadingDirectories() throws {
    let sample = try SampleBackup()
    let files = try sample.storedFiles()
    var digests: Set<String> = []
    for prefix in ["", "./", "\(SampleBackup.udid)/", "./some backup/"] {
      var tar = TarFixture()
      if !prefix.isEmpty { tar.add(prefix, type: "5") }
      for file in files { tar.add(prefix + file.path, file.bytes) }
      var zip = ZipFixture()
      for file in files { zip.add(prefix + file.path, file.bytes) }
      digests.insert(try open(tar.finished()).digest)
      digests.insert(try open(zip.finished()).digest)
    }
    #expect(digests.count == 1)
  }

  /// The paths of a container's entries, in the order in which they are written.
  private static let entryPaths = [
    "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "51/\(KeychainPayload.fileIdentifier)",
    "Keyhaul.seal",
  ].map { "\(SampleBackup.udid)/\($0)" }

  @Test("GNU tar lists all files of a written tar")
  func tarReadByGNU() throws {
    let directory = try TemporaryDirectory()
    for (name, format) in [("a.tar", ContainerFormat.tar), ("a.tar.gz", .gzippedTar), ("a.tar.zst", .zstandardTar)] {
      try SampleBackup().write(to: .file(directory.path(name), format))
      let listing = try run("tar", "-tf", directory.path(name))
      #expect(listing.split(separator: "\n").map(String.init) == Self.entryPaths)
    }
  }

  @Test("Python's zipfile lists all files of a written zip and finds no fault")
  func zipReadByPython() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .file(directory.path("a.zip"), .zip))
    let script = """
      import sys, zipfile
      container = zipfile.ZipFile(sys.argv[1])
      assert container.testzip() is None
      print(*container.namelist(), sep='\\n')
      """
    let listing = try run("python3", "-c", script, directory.path("a.zip"))
    #expect(listing.split(separator: "\n").map(String.init) == Self.entryPaths)
  }

  @Test("A tar that GNU tar wrote has the same digest as its directory")
  func tarByGNU() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("backup")))
    _ = try run("tar", "-C", directory.path("backup"), "-cf", directory.path("gnu.tar"), ".")
    _ = try run("tar", "-C", directory.path("backup"), "-czf", directory.path("gnu.tgz"), ".")
    let digest = try BackupArchive.open(.path(directory.path("backup"))).digest
    #expect(try BackupArchive.open(.path(directory.path("gnu.tar"))).digest == digest)
    #expect(try BackupArchive.open(.path(directory.path("gnu.tgz"))).digest == digest)
  }

  @Test("SQLite's checks find no fault in the manifest database")
  func otherDatabaseReader() throws {
    let sample = try SampleBackup(hasPassword: false)
    let directory = try TemporaryDirectory()
    try sample.write(to: .directory(directory.path("backup")))
    let script = """
      import sqlite3, sys
      database = sqlite3.connect(sys.argv[1])
      pragmas = ('integrity_check', 'user_version', 'page_size', 'auto_vacuum')
      print(*[database.execute('PRAGMA ' + pragma).fetchone()[0] for pragma in pragmas])
      for row in database.execute('SELECT fileID, domain, relativePath, flags FROM Files ORDER BY flags'):
        print(*row, sep='|')
      """
    let lines = try run("python3", "-c", script, directory.path("backup/Manifest.db")).split(separator: "\n")
    #expect(
      lines == [
        "ok 2 4096 2", "51a4616e576dd33cd2abadfea874eb8ff246bf0e|KeychainDomain|keychain-backup.plist|1",
        "99ca4cf9b3ab77ae82d8c06cc1441806565308fd|KeychainDomain||2",
      ])
  }

  @Test("Writing the same backup again results in the same bytes", arguments: ContainerFormat.allCases)
  func reproducible(format: ContainerFormat) throws {
    let packed = try SampleBackup().packed(as: format)
    #expect(try SampleBackup().packed(as: format) == packed)
    #expect(try SampleBackup(seed: "other").packed(as: format) != packed)
  }

  @Test("Files of a backup are only accessible to their owner")
  func permissions() throws {
    let sample = try SampleBackup()
    let directory = try TemporaryDirectory()
    try sample.write(to: .directory(directory.path("backup")))
    try sample.write(to: .file(directory.path("one.tar"), .tar))
    #expect(try permissions(of: "backup", in: directory) == 0o700)
    #expect(try permissions(of: "backup/51", in: directory) == 0o700)
    #expect(try permissions(of: "backup/Manifest.db", in: directory) == 0o600)
    #expect(try permissions(of: "one.tar", in: directory) == 0o600)
  }

  @Test("A directory of the user keeps its permissions when a backup is written to it", arguments: [0o755, 0o750])
  func permissionsOfExistingDirectory(permissions: Int) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("own")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    // Permissions that are set at the creation would depend on the umask.
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    for replaces in [false, true] {
      try SampleBackup().write(to: .directory(path), replace: replaces)
      #expect(try self.permissions(of: "own", in: directory) == permissions)
      #expect(try self.permissions(of: "own/51", in: directory) == 0o700)
      #expect(try self.permissions(of: "own/Manifest.db", in: directory) == 0o600)
    }
  }

  private func permissions(of name: String, in directory: TemporaryDirectory) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: directory.path(name))[.posixPermissions] as? Int
  }

  private func run(_ arguments: String...) throws -> String {
    let outcome = try ChildProcess(arguments[0], Array(arguments.dropFirst())).run()
    try #require(outcome.status == 0, "\(arguments[0]) failed: \(String(decoding: outcome.errors, as: UTF8.self))")
    return String(decoding: outcome.output, as: UTF8.self)
  }
}
