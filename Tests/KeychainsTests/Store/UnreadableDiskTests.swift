import Basics
import CSQLite
import Foundation
import GRDBSQLite
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Disk errors while a keychain is read", .serialized)
struct UnreadableDiskTests {
  @Test("A failed read of the database or its log is not reported as damage", arguments: ["", "-wal"])
  func everyRead(suffix: String) throws {
    let keychain = try Keychain()
    for name in ["a", "b", "c"] { try keychain.add(.genericPassword(name)) }
    // Closing merges the log into the file.
    if suffix.isEmpty { try keychain.store.close() }
    var failureCount = 0
    for firstFailingRead in 1...500 {
      try FailingReads.start(keychain.path + suffix, from: firstFailingRead)
      defer { FailingReads.stop() }
      do throws(KeyhaulError) {
        let store = try KeychainStore.open(at: keychain.path, isForReading: true)
        let found = try store.find(ItemQuery(kind: .genericPassword), keys: keychain.keys)
        guard FailingReads.count >= firstFailingRead else {
          #expect(found.items.count == 3)
          break
        }
      } catch {
        failureCount += 1
        #expect(error.code == .storeIO, "read \(firstFailingRead): \(error)")
        // The result code is 10 (SQLITE_IOERR) or 11 (SQLITE_CORRUPT).
        #expect(error.reason.hasPrefix("SQLite returned 1"), "read \(firstFailingRead): \(error)")
      }
    }
    #expect(failureCount > 3)
    let store = try KeychainStore.open(at: keychain.path)
    #expect(try store.find(ItemQuery(kind: .genericPassword), keys: keychain.keys).items.count == 3)
  }

  @Test("A failed read is reported with the system's error text")
  func errorText() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.store.close()
    let store = try KeychainStore.open(at: keychain.path)
    // Cached pages would not be read from the disk.
    try store.write { (transaction) throws(KeyhaulError) in
      try transaction.database.run("PRAGMA shrink_memory", [])
    }
    try FailingReads.start(keychain.path, from: 1)
    defer { FailingReads.stop() }
    let error = #expect(throws: KeyhaulError.self) {
      try store.find(ItemQuery(kind: .genericPassword), keys: keychain.keys)
    }
    #expect(error?.code == .storeIO)
    #expect(error?.reason.hasSuffix(", input/output error") == true, "\(String(describing: error))")
  }
}

/// Injects errors into SQLite's reads of one file.
private enum FailingReads {
  /// The file's inode, the number of the first read that fails, and the number of reads until now.
  private static let state = Locked((inode: UInt64(0), firstFailingRead: 0, count: 0))

  /// Makes all reads of a file fail, starting with the read of this number.
  static func start(_ path: String, from firstFailingRead: Int) throws {
    _ = isInstalled
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    let inode = try #require(attributes[.systemFileNumber] as? UInt64)
    state.withLock { $0 = (inode, firstFailingRead, 0) }
  }

  static func stop() { state.withLock { $0.inode = 0 } }

  /// The number of reads from the file.
  static var count: Int { state.withLock { $0.count } }

  static func shouldFail(_ file: Int32) -> Bool {
    var status = stat()
    guard fstat(file, &status) == 0 else { return false }
    return state.withLock { state in
      guard state.inode == status.st_ino else { return false }
      state.count += 1
      return state.count >= state.firstFailingRead
    }
  }

  /// Replaces SQLite's system calls, an interface that SQLite provides for tests.
  private static let isInstalled: Bool = {
    guard let system = sqlite3_vfs_find(nil) else { return false }
    typealias Read = @convention(c) (Int32, UnsafeMutableRawPointer?, Int) -> Int
    typealias ReadAt = @convention(c) (Int32, UnsafeMutableRawPointer?, Int, Int64) -> Int
    let plainRead: Read = { file, target, count in
      guard !FailingReads.shouldFail(file) else { return FailingReads.failRead() }
      return read(file, target, count)
    }
    let positionedRead: ReadAt = { file, target, count, offset in
      guard !FailingReads.shouldFail(file) else { return FailingReads.failRead() }
      return pread(file, target, count, off_t(offset))
    }
    _ = system.pointee.xSetSystemCall(system, "read", unsafeBitCast(plainRead, to: sqlite3_syscall_ptr.self))
    for name in ["pread", "pread64"] {
      _ = system.pointee.xSetSystemCall(system, name, unsafeBitCast(positionedRead, to: sqlite3_syscall_ptr.self))
    }
    return true
  }()

  /// Sets `errno`, and returns the result of a failed read.
  private static func failRead() -> Int {
    errno = EIO
    return -1
  }
}
