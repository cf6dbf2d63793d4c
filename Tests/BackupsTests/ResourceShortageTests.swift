import Basics
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Shortages of descriptors and memory")
struct ResourceShortageTests {
  @Test(
    "An error caused by a shortage is reported as a system failure, not as damage",
    arguments: [Errno.tooManyOpenFiles, .noMemory])
  func code(reason: Errno) {
    let error = KeyhaulError(.damaged, "a file: \(reason.reason)", of: reason)
    #expect(error.isResourceShortage && error.code == .unreadable && error.category == .failed)
    let withoutShortage = KeyhaulError(.damaged, "a file: bad", of: .ioError)
    #expect(!withoutShortage.isResourceShortage && withoutShortage.code == .damaged)
  }

  @Test(
    "A shortage of descriptors does not make a backup's files count as damaged",
    arguments: [1, 5, 20, 60, 200])
  func extraction(allowedCount: Int) throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(ExtractionTests.files, isEncrypted: false)
    try backup.write(to: directory)
    let openedCount = Locked(0)
    let system = FileSystem(faults: { call in
      guard call == .open || call == .create else { return call == .sync || call == .syncFileSystem ? .omitted : nil }
      let number = openedCount.withLock {
        $0 += 1
        return $0
      }
      return number > allowedCount ? .failure(.tooManyOpenFiles) : nil
    })
    do {
      let result = try ExtractionTests.extract(backup, directory, system: system)
      #expect(result.isComplete)
    } catch let error as KeyhaulError {
      #expect(error.category == .failed, "\(error.code): \(error.reason)")
      #expect(error.reason.contains("too many open files"))
    }
  }
}
