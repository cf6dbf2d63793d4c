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
    let destinations = ["folder/", "one.tar", "one.tar.gz", "one.tar.zst", "one.zip", "noextension"].map(directory.path)
    for destination in destinations {
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
      #expect(try archive.storedFiles().byteCount == Int64(archiveKeychainSize(sample.contents, hasPassword)))
      digests.insert(archive.digest)
    }
    #expect(digests.count == 1)
    let digest = try #require(digests.first)
    #expect(digest.hasPrefix("sha256:") && digest.utf8.count == 71)
  }

  /// PKCS#7 adds 1 to 16 bytes.
  private func archiveKeychainSize(_ contents: BackupContents, _ isEncrypted: Bool) throws -> Int {
    let count = try contents.keychainFile.count
    return isEncrypted ? count + 16 - count % 16 : count
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

  @Test("GNU tar and Python's zipfile read the same files")
  func otherReaders() throws {
    let sample = try SampleBackup()
    let directory = try TemporaryDirectory()
    let expected = [
      "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "51/\(KeychainPayload.fileIdentifier)",
      "Keyhaul.seal",
    ].map { "\(SampleBackup.udid)/\($0)" }
    try sample.write(to: .directory(directory.path("backup")))
    for (name, format) in [("a.tar", ContainerFormat.tar), ("a.tar.gz", .gzippedTar), ("a.tar.zst", .zstandardTar)] {
      try sample.write(to: .file(directory.path(name), format))
      #expect(try run("tar", "-tf", directory.path(name)).split(separator: "\n").map(String.init) == expected)
    }
    try sample.write(to: .file(directory.path("a.zip"), .zip))
    let script =
      "import sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(*z.namelist(),sep='\\n')"
    #expect(
      try run("python3", "-c", script, directory.path("a.zip")).split(separator: "\n").map(String.init) == expected)
    // A tar by GNU tar can be read as well.
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
      import sqlite3,sys
      d=sqlite3.connect(sys.argv[1])
      print(*[d.execute('PRAGMA '+p).fetchone()[0] for p in ('integrity_check','user_version','page_size','auto_vacuum')])
      for r in d.execute('SELECT fileID,domain,relativePath,flags FROM Files ORDER BY flags'): print(*r,sep='|')
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
    let first = try SampleBackup().packed(as: format)
    let second = try SampleBackup().packed(as: format)
    #expect(first == second)
    let other = try SampleBackup(seed: "other").packed(as: format)
    #expect(first != other)
  }

  @Test("Files of a backup are only accessible to their owner")
  func permissions() throws {
    let sample = try SampleBackup()
    let directory = try TemporaryDirectory()
    try sample.write(to: .directory(directory.path("backup")))
    try sample.write(to: .file(directory.path("one.tar"), .tar))
    func mode(_ name: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: directory.path(name))[.posixPermissions] as? Int
    }
    #expect(try mode("backup") == 0o700)
    #expect(try mode("backup/51") == 0o700)
    #expect(try mode("backup/Manifest.db") == 0o600)
    #expect(try mode("one.tar") == 0o600)
    // A directory that a user created keeps its permissions, also after it is replaced.
    for bits in [0o755, 0o750] {
      let name = "own \(bits)"
      try FileManager.default.createDirectory(
        atPath: directory.path(name), withIntermediateDirectories: false, attributes: [.posixPermissions: bits])
      // Independent of the umask.
      try FileManager.default.setAttributes([.posixPermissions: bits], ofItemAtPath: directory.path(name))
      for replaces in [false, true] {
        try sample.write(to: .directory(directory.path(name)), replace: replaces)
        #expect(try mode(name) == bits && mode("\(name)/51") == 0o700 && mode("\(name)/Manifest.db") == 0o600)
      }
    }
  }

  private func run(_ arguments: String...) throws -> String {
    let outcome = try ChildProcess(arguments[0], Array(arguments.dropFirst())).run()
    try #require(outcome.status == 0, "\(arguments[0]) failed: \(String(decoding: outcome.errors, as: UTF8.self))")
    return String(decoding: outcome.output, as: UTF8.self)
  }
}
