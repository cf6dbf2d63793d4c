import Basics
import KeychainCrypto
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Verification of backups with large manifests")
struct LargeManifestVerificationTests {
  private static let fileCount = 4_000

  /// Creates a manifest of ten megabytes, with paths of a thousand bytes in the rows and the records.
  private func backup() throws -> EditableBackup {
    try EditableBackup(
      files: (0..<Self.fileCount).map { number in
        EditableBackup.File(
          "\(number)/" + String(repeating: "a long name ", count: 80), [UInt8("\(number)".utf8.first ?? 0)])
      })
  }

  /// The result of a verification with a failed read.
  private enum Outcome: Equatable {
    /// The verification ended with an error.
    case error(reason: String)
    /// The verification was completed.
    case faults([BackupVerification.Fault])
  }

  @Test(
    "A failed read of the manifest is an error, and a failed read of a payload is a fault of its file (four reads in a quick run)"
  )
  func unreadable() throws {
    let backup = try backup()
    let readCount = Locked(0)
    let failingRead = Locked<Int?>(nil)
    let system = FileSystem { call in
      guard call == .read else { return nil }
      return readCount.withLock { count in
        count += 1
        return count == failingRead.withLock { $0 } ? .failure(.ioError) : nil
      }
    }
    let archive = try BackupArchive.open(.path(backup.path), limits: .standard, system: system)
    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    func outcome(failingRead number: Int?) throws -> Outcome {
      readCount.withLock { $0 = 0 }
      failingRead.withLock { $0 = number }
      defer { failingRead.withLock { $0 = nil } }
      do throws(KeyhaulError) {
        return .faults(try BackupVerification(archive, keys: try key.classKeys(deviceKey: nil), jobs: 1).faults)
      } catch {
        return .error(reason: error.reason)
      }
    }
    #expect(try outcome(failingRead: nil) == .faults([]))
    let totalCount = readCount.withLock { $0 }
    // The manifest is read before the payloads, and again for each of them.
    var errorCount = 0
    var faultCount = 0
    let failingReads = Array(stride(from: totalCount / 4, to: totalCount, by: totalCount / 12))
    for number in Cases.chosen(failingReads, quick: 4) {
      switch try outcome(failingRead: number) {
      case .error(let reason):
        errorCount += 1
        #expect(reason == "a temporary file: input/output error", "read \(number) of \(totalCount)")
      case .faults(let faults):
        faultCount += 1
        #expect(faults.map(\.kind) == [.payloadUnreadable], "read \(number) of \(totalCount)")
        #expect(faults.first?.file?.hasPrefix("HomeDomain/") == true, "\(faults)")
      }
    }
    #expect(errorCount > 0 && faultCount > 0, "\(errorCount) errors, \(faultCount) faults")
  }
}
