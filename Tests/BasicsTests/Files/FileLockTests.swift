import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Basics

@Suite("File locks")
struct FileLockTests {
  private let directory: TemporaryDirectory
  private let system = FileSystem.real

  init() throws { directory = try TemporaryDirectory() }

  private func isFree(_ kind: FileLock.Kind) throws -> Bool {
    let lock = try system.lock(try system.openLockFile(directory.path("lock")), kind)
    return lock != nil
  }

  @Test("An exclusive lock excludes all others, and a shared lock excludes only exclusive ones")
  func holding() throws {
    do {
      let exclusive = try system.lock(try system.openLockFile(directory.path("lock")), .exclusive)
      // A lock cannot be copied, so `#expect` does not accept it.
      let isHeld = exclusive != nil
      #expect(isHeld)
      #expect(try !isFree(.exclusive))
      #expect(try !isFree(.shared))
      _ = consume exclusive
    }
    do {
      let shared = try system.lock(try system.openLockFile(directory.path("lock")), .shared)
      #expect(try isFree(.shared))
      #expect(try !isFree(.exclusive))
      _ = consume shared
    }
    #expect(try isFree(.exclusive))
  }

  @Test("A file is free as soon as its lock is released, even if its descriptor has a copy")
  func copies() throws {
    // A child process that is starting has such a copy.
    let copy: FileDescriptor
    do {
      let exclusive = try system.lock(try system.openLockFile(directory.path("lock")), .exclusive)
      let raw: FileDescriptor? =
        switch exclusive {
        case .some(let lock): lock.file.raw
        case .none: nil
        }
      copy = try #require(raw).duplicate()
      #expect(try !isFree(.exclusive))
      _ = consume exclusive
    }
    defer { try? copy.close() }
    #expect(try isFree(.exclusive))
  }

  @Test("Locking is repeated after a signal, and throws any other error of the system")
  func faults() throws {
    let signals = CallCounter(of: .lock, failing: 1, with: .failure(.interrupted))
    let lock = try signals.system.lock(try system.openDirectory(directory.path), .exclusive)
    let isHeld = lock != nil
    #expect(isHeld && signals.count == 2)
    let broken = CallCounter(of: .lock, failing: 1, with: .failure(.notSupported))
    #expect(throws: Errno.notSupported) {
      _ = try broken.system.lock(try system.openDirectory(directory.path), .exclusive)
    }
  }

  @Test("A lock file is accessible only to its owner, and its content is replaced completely")
  func file() throws {
    let lock = try system.lock(try system.openLockFile(directory.path("lock")), .exclusive)
    try lock?.replaceContents(with: Array("process 1234".utf8), system)
    try lock?.replaceContents(with: Array("process 5".utf8), system)
    #expect(try directory.read("lock") == Array("process 5".utf8))
    #expect(try lock?.contains(Array("process 5".utf8), system) == true)
    for otherContents in ["process 6", "process 50", "process", ""] {
      #expect(try lock?.contains(Array(otherContents.utf8), system) == false)
    }
    #expect(try system.status(of: directory.path("lock"))?.permissions == 0o600)
  }

  @Test("A symbolic link is not opened as a lock file")
  func link() throws {
    try directory.write([], to: "elsewhere")
    try FileManager.default.createSymbolicLink(atPath: directory.path("lock"), withDestinationPath: "elsewhere")
    #expect(throws: Errno.tooManySymbolicLinkLevels) { _ = try system.openLockFile(directory.path("lock")) }
  }
}
