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
    case ended(String)
    case faults([BackupVerification.Fault])
  }

  @Test(
    "A failed read of the manifest is an error, and a failed read of a payload is a fault of its file (four reads in a quick run)"
  )
  func unreadable() throws {
    let backup = try backup()
    let reads = Locked(0)
    let failing = Locked(-1)
    let system = FileSystem { call in
      guard call == .read else { return nil }
      return reads.withLock { reads in
        reads += 1
        return reads == failing.withLock { $0 } ? .failure(.ioError) : nil
      }
    }
    let archive = try BackupArchive.open(.path(backup.path), limits: .standard, system: system)
    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    func outcome(failing number: Int) throws -> Outcome {
      reads.withLock { $0 = 0 }
      failing.withLock { $0 = number }
      defer { failing.withLock { $0 = -1 } }
      do throws(KeyhaulError) {
        return .faults(try BackupVerification(archive, keys: try key.classKeys(deviceKey: nil), jobs: 1).faults)
      } catch {
        return .ended(error.reason)
      }
    }
    #expect(try outcome(failing: 0) == .faults([]))
    let count = reads.withLock { $0 }
    // The manifest is read before the payloads, and again for each of them.
    var (ended, faulty) = (0, 0)
    let failures = Array(stride(from: count / 4, to: count, by: count / 12))
    for number in Cases.chosen(failures, quick: 4) {
      switch try outcome(failing: number) {
      case .ended(let reason):
        ended += 1
        #expect(reason == "a temporary file: input/output error", "read \(number) of \(count)")
      case .faults(let faults):
        faulty += 1
        #expect(faults.map(\.kind) == [.payloadUnreadable], "read \(number) of \(count)")
        #expect(faults.first?.file?.hasPrefix("HomeDomain/") == true, "\(faults)")
      }
    }
    #expect(ended > 0 && faulty > 0, "\(ended) ended, \(faulty) faulty")
  }
}
