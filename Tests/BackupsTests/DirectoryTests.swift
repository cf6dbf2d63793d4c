import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Backup directories on disk")
struct DirectoryTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("backup")))
    try directory.write(Array("precious".utf8), to: "victim")
  }

  /// Returns the error if a backup cannot be opened, otherwise `nil`.
  private func failure(_ path: String = "backup") -> KeyhaulError? {
    do {
      _ = try BackupArchive.open(.path(directory.path(path)))
      return nil
    } catch {
      return error
    }
  }

  /// Removes a file of the backup and calls a closure with its path to create something else there.
  private func replace(_ name: String, _ create: (String) throws -> Void) throws {
    let path = directory.path("backup/\(name)")
    try FileManager.default.removeItem(atPath: path)
    try create(path)
  }

  static let requiredFiles = ["Manifest.plist", "Manifest.db", "Status.plist", "51/\(KeychainPayload.fileIdentifier)"]

  @Test("A backup with a link instead of a file is refused", arguments: requiredFiles)
  func links(file: String) throws {
    let copy = directory.path("copy")
    try FileManager.default.copyItem(atPath: directory.path("backup/\(file)"), toPath: copy)
    try replace(file) { try FileManager.default.createSymbolicLink(atPath: $0, withDestinationPath: copy) }
    #expect(failure()?.code == .hostile)
    #expect(failure()?.reason.hasPrefix(file) == true)
  }

  @Test("A backup with a pipe instead of a file is refused immediately", arguments: requiredFiles)
  func pipes(file: String) throws {
    try replace(file) { #expect(mkfifo($0, 0o600) == 0) }
    #expect(failure()?.code == .hostile)
  }

  @Test("A backup with a socket instead of a file is refused", arguments: requiredFiles)
  func sockets(file: String) throws {
    try replace(file) { #expect(mknod($0, S_IFSOCK | 0o600, 0) == 0) }
    #expect(failure()?.code == .hostile)
  }

  @Test("A backup with a directory instead of a file is refused", arguments: requiredFiles)
  func directories(file: String) throws {
    try replace(file) { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false) }
    #expect(failure()?.code == .hostile)
  }

  @Test("A backup whose payload directory is a link is refused")
  func linkedPayloadDirectory() throws {
    try FileManager.default.moveItem(atPath: directory.path("backup/51"), toPath: directory.path("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("backup/51"), withDestinationPath: directory.path("elsewhere"))
    #expect(failure()?.code == .hostile)
  }

  @Test("The path of a backup can be a link")
  func linkedRoot() throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("link"), withDestinationPath: directory.path("backup"))
    #expect(failure("link") == nil)
  }

  @Test("A directory without Manifest.plist, a missing path, and a pipe are not backups")
  func notABackup() throws {
    try directory.write([1], to: "photos/one.jpg")
    let error = try #require(failure("photos"))
    #expect(error.code == .notABackup)
    #expect(error.summary == "this is not a backup")
    #expect(error.reason == "it has no Manifest.plist")
    #expect(error.advice == "the folder named after the device's identifier")
    #expect(failure("nowhere")?.category == .notFound)
    #expect(mkfifo(directory.path("pipe"), 0o600) == 0)
    #expect(failure("pipe")?.code == .notABackup)
  }

  @Test("A folder with a backup's property lists, but no Manifest.plist, is unfinished, and the error quotes them")
  func withoutManifest() throws {
    func write(_ root: PropertyDictionary, to name: String) throws {
      try directory.write(try BinaryPlist.encode(.dictionary(root)), to: name)
    }
    let payload = "51/\(KeychainPayload.fileIdentifier)"
    try directory.write([1], to: "unfinished/\(payload)")
    #expect(failure("unfinished")?.code == .notABackup, "payloads are not enough to recognize a backup")
    try write(["Device Name": .string("Made Up"), "Product Type": .string("iPhone14,5")], to: "unfinished/Info.plist")
    let missingManifest = "it has no Manifest.plist, which is needed to get its keys; "
    let info = "Info.plist says \"Made Up\", \"iPhone14,5\"; "
    #expect(failure("unfinished")?.reason == missingManifest + info + "it has no Status.plist; 1 payload is in it")
    try write(["SnapshotState": .string("uploading")], to: "unfinished/Status.plist")
    try directory.write([1], to: "unfinished/Snapshot/\(payload)")
    let error = try #require(failure("unfinished"))
    #expect(error.code == .manifestMissing && error.category == .damaged)
    #expect(
      error.reason == missingManifest + "its Snapshot folder remains, with 1 payload; " + info
        + "Status.plist says \"uploading\"; 1 payload is in it")
    // A finished backup had a manifest, so a backup that has lost it is damaged.
    try write(["SnapshotState": .string("finished")], to: "unfinished/Status.plist")
    #expect(failure("unfinished")?.code == .damaged)
    // Apps also contain an Info.plist.
    try directory.write([1], to: "app/Info.plist")
    #expect(failure("app")?.code == .notABackup)
  }

  @Test("Only valid payloads of a backup are counted")
  func payloads() throws {
    let name = String(repeating: "ab", count: 20)
    try directory.write([1, 2, 3], to: "backup/ab/\(name)")
    try directory.write([1], to: "backup/ab/\(name.uppercased())")
    try directory.write([1], to: "backup/ab/cd\(name.dropFirst(2))")
    try directory.write([1], to: "backup/zz/note")
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("backup/ab/ab\(String(repeating: "0", count: 38))"),
      withDestinationPath: directory.path("victim"))
    let keychainByteCount = try directory.read("backup/51/\(KeychainPayload.fileIdentifier)").count
    let stored = try BackupArchive.open(.path(directory.path("backup"))).storedFiles()
    #expect(stored.count == 2)
    #expect(stored.byteCount == Int64(keychainByteCount + 3))
  }

  @Test("An open backup is not affected if a file in its directory is overwritten")
  func overwritten() throws {
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    let digest = archive.digest
    try directory.write([0], to: "backup/Manifest.db")
    let sample = try SampleBackup()
    #expect(archive.digest == digest)
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
  }
}

@Suite("Destinations of backups")
struct DestinationTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func write(_ name: String, replace: Bool = false, seed: String = "sample") throws -> String? {
    try SampleBackup(seed: seed).write(to: BackupDestination(path: directory.path(name)), replace: replace).path
  }

  @Test("A file extension determines the format, and a slash or an existing directory means a directory")
  func names() throws {
    try FileManager.default.createDirectory(atPath: directory.path("there"), withIntermediateDirectories: false)
    #expect(BackupDestination(path: directory.path("there")) == .directory(directory.path("there")))
    #expect(BackupDestination(path: "a/") == .directory("a/"))
    #expect(BackupDestination(path: "a.zip") == .file("a.zip", .zip))
    #expect(BackupDestination(path: "a.TAR.GZ") == .file("a.TAR.GZ", .gzippedTar))
    #expect(BackupDestination(path: "a.tgz") == .file("a.tgz", .gzippedTar))
    #expect(BackupDestination(path: "a.tar.zst") == .file("a.tar.zst", .zstandardTar))
    #expect(BackupDestination(path: "family.backup") == .file("family.backup", .tar))
  }

  @Test("A new or empty directory becomes the backup")
  func absentAndEmpty() throws {
    try FileManager.default.createDirectory(atPath: directory.path("empty"), withIntermediateDirectories: false)
    #expect(try write("empty") == directory.path("empty"))
    #expect(try write("absent/") == directory.path("absent/"))
    #expect(FileManager.default.fileExists(atPath: directory.path("empty/Manifest.plist")))
    #expect(FileManager.default.fileExists(atPath: directory.path("absent/Manifest.plist")))
  }

  @Test("In a directory with other content, a directory for the backup is created")
  func otherContent() throws {
    try directory.write([1], to: "home/note")
    #expect(try write("home") == directory.path("home") + "/\(SampleBackup.udid)")
    #expect(FileManager.default.fileExists(atPath: directory.path("home/\(SampleBackup.udid)/Manifest.plist")))
    let error = #expect(throws: KeyhaulError.self) { try write("home") }
    #expect(error?.code == .occupied)
    #expect(try write("home", replace: true, seed: "new") != nil)
    #expect(try directory.read("home/note") == [1])
  }

  @Test("An existing backup or file is replaced only with permission")
  func replacing() throws {
    for name in ["backup/", "one.tar"] {
      _ = try write(name)
      let before = try tree(directory.path)
      let error = #expect(throws: KeyhaulError.self) { try write(name, seed: "new") }
      #expect(error?.code == .occupied)
      #expect(error?.category == .usage)
      #expect(try tree(directory.path) == before)
      _ = try write(name, replace: true, seed: "new")
      #expect(try tree(directory.path) != before)
      #expect(try tree(directory.path).count == before.count)
    }
  }

  @Test("A destination that is a link, or neither a file nor a directory, is refused")
  func linksAndPipes() throws {
    try directory.write(Array("precious".utf8), to: "victim")
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("link.tar"), withDestinationPath: directory.path("victim"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("dangling"), withDestinationPath: directory.path("none"))
    #expect(mkfifo(directory.path("pipe.tar"), 0o600) == 0)
    for name in ["link.tar", "pipe.tar", "dangling", "dangling/", "victim/"] {
      let error = #expect(throws: KeyhaulError.self) { try write(name, replace: true) }
      #expect(error?.code == .occupied, "\(name)")
    }
    #expect(try directory.read("victim") == Array("precious".utf8))
    #expect(!FileManager.default.fileExists(atPath: directory.path("none")))
  }

  @Test("A destination in a missing directory or with an invalid name is refused")
  func impossibleDestinations() throws {
    let error = #expect(throws: KeyhaulError.self) { try write("no/such/one.tar") }
    #expect(error?.category == .notFound)
    let sample = try SampleBackup()
    for path in ["..", "/", "", "."] {
      #expect(throws: KeyhaulError.self) { try sample.write(to: .file(path, .tar)) }
    }
  }

  @Test("A backup whose device identifier is a path is refused", arguments: ["../x", "", "a/b", "a b", "é"])
  func identifiers(identifier: String) throws {
    let sample = try SampleBackup()
    var contents = sample.contents
    contents.device.identifier = identifier
    let error = #expect(throws: KeyhaulError.self) {
      try BackupWriter().write(contents, keys: sample.keys, to: .directory(directory.path("x")))
    }
    #expect(error?.code == .unwritable)
    #expect(try tree(directory.path).isEmpty)
  }
}
