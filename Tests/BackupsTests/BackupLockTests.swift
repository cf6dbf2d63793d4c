import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@Suite("Backup locks")
struct BackupLockTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
  }

  private func isBusy(_ name: String, for access: BackupLock.Access) throws -> Bool {
    do throws(KeyhaulError) {
      let lock = try BackupLock.acquire(directory.path(name), for: access)
      lock?.release()
      return false
    } catch {
      #expect(error.code == .busy && error.category == .busy)
      return true
    }
  }

  @Test("Many processes can read a backup at the same time, but only one can change it")
  func accesses() throws {
    let reader = try #require(try BackupLock.acquire(directory.path("b"), for: .reading))
    #expect(try !isBusy("b", for: .reading))
    #expect(try isBusy("b", for: .writing))
    reader.release()
    let writer = try #require(try BackupLock.acquire(directory.path("b"), for: .writing))
    #expect(try isBusy("b", for: .reading))
    #expect(try isBusy("b", for: .writing))
    writer.release()
    #expect(try !isBusy("b", for: .writing))
  }

  @Test("A lock of a backup applies to every link to it")
  func names() throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("link"), withDestinationPath: directory.path("b"))
    try SampleBackup().write(to: .file(directory.path("b.tar"), .tar))
    try FileManager.default.linkItem(atPath: directory.path("b.tar"), toPath: directory.path("second.tar"))
    let directoryLock = try #require(try BackupLock.acquire(directory.path("link"), for: .writing))
    let fileLock = try #require(try BackupLock.acquire(directory.path("b.tar"), for: .writing))
    #expect(try isBusy("b", for: .writing) && isBusy("b/", for: .reading))
    #expect(try isBusy("second.tar", for: .writing))
    directoryLock.release()
    fileLock.release()
  }

  @Test("If a backup is replaced during the wait for its lock, the new backup is locked")
  func replaced() throws {
    let oldLock = try #require(try BackupLock.acquire(directory.path("b"), for: .writing))
    try SampleBackup().write(to: .directory(directory.path("new")))
    var checkCount = 0
    let newLock = try BackupLock.acquire(directory.path("b"), for: .writing, wait: .seconds(30)) {
      checkCount += 1
      if checkCount == 1 {
        try? FileManager.default.moveItem(atPath: directory.path("b"), toPath: directory.path("old"))
        try? FileManager.default.moveItem(atPath: directory.path("new"), toPath: directory.path("b"))
        oldLock.release()
      }
      return true
    }
    #expect(newLock != nil && checkCount == 1)
    #expect(try isBusy("b", for: .writing))
    #expect(try !isBusy("old", for: .writing))
    newLock?.release()
  }

  @Test("The wait for a lock ends with an error at its limit, or when the user stops it")
  func waits() throws {
    let writer = try #require(try BackupLock.acquire(directory.path("b"), for: .writing))
    var checkCount = 0
    #expect(throws: KeyhaulError.self) {
      try BackupLock.acquire(directory.path("b"), for: .reading, wait: .seconds(60)) {
        checkCount += 1
        return checkCount < 3
      }
    }
    #expect(checkCount == 3)
    #expect(throws: KeyhaulError.self) {
      try BackupLock.acquire(directory.path("b"), for: .reading, wait: .milliseconds(30))
    }
    writer.release()
  }

  @Test("Missing files, pipes and file systems without locks have no backup lock")
  func unavailable() throws {
    #expect(try BackupLock.acquire(directory.path("nothing"), for: .reading) == nil)
    #expect(mkfifo(directory.path("pipe"), 0o600) == 0)
    #expect(try BackupLock.acquire(directory.path("pipe"), for: .reading) == nil)
    let withoutLocks = FileSystem { call in call == .lock ? .failure(.notSupported) : nil }
    #expect(try BackupLock.acquire(directory.path("b"), for: .writing, system: withoutLocks) == nil)
    let broken = FileSystem { call in call == .lock ? .failure(.ioError) : nil }
    #expect(throws: KeyhaulError.self) {
      try BackupLock.acquire(directory.path("b"), for: .writing, system: broken)
    }
  }

  @Test("A rewriter refuses a backup that another process reads, or that has changed since it was opened")
  func rewriter() throws {
    let path = directory.path("b")
    let archive = try BackupArchive.open(.path(path))
    let keys = try archive.keybag.keys(SampleBackup.password)
    let keybag = try BackupKeybag.rewrap(
      archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: "another"))
    let manifestBefore = try directory.read("b/Manifest.plist")
    let reader = try #require(try BackupLock.acquire(path, for: .reading))
    let busyError = #expect(throws: KeyhaulError.self) {
      try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: path, with: keybag, keys: keys)
    }
    #expect(busyError?.code == .busy)
    #expect(try directory.read("b/Manifest.plist") == manifestBefore)
    reader.release()
    try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: path, with: keybag, keys: keys)
    let changeError = #expect(throws: KeyhaulError.self) {
      try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: path, with: keybag, keys: keys)
    }
    #expect(changeError?.code == .changed)
  }

  @Test("The second of two processes that create the same backup is refused", arguments: ["new", "new.tar"])
  func created(name: String) throws {
    func destination(in directory: TemporaryDirectory) -> BackupDestination {
      let path = directory.path(name)
      return name == "new" ? .directory(path) : .file(path, .tar)
    }
    let sameDestination = destination(in: directory)
    // The other process creates its backup after this process has checked the destination, and before it renames its
    // own backup.
    nonisolated(unsafe) var isCreated = false
    let system = FileSystem { call in
      guard call == .rename, !isCreated else { return nil }
      isCreated = true
      do { try SampleBackup(seed: "other").write(to: sameDestination) } catch { Issue.record(error) }
      return nil
    }
    let error = #expect(throws: KeyhaulError.self) {
      try SampleBackup().write(to: sameDestination, system: system)
    }
    #expect(error?.code == .occupied, "\(String(describing: error))")

    let installed = try BackupArchive.open(.path(directory.path(name)))
    let otherDirectory = try TemporaryDirectory()
    try SampleBackup(seed: "other").write(to: destination(in: otherDirectory))
    let expected = try BackupArchive.open(.path(otherDirectory.path(name)))
    #expect(installed.digest == expected.digest)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("")).sorted()
    #expect(names == ["b", name])
  }
}
