import Basics
import Foundation
import TestSupport
import Testing
import VirtualDevice

@Suite("Repeatable backups")
struct RepeatableBackupTests {
  /// Makes a backup with a seed, a fixed clock and a new folder.
  private func backUp(seed: String, password: String?, as packaging: TestSetup.Packaging) throws -> [String: [UInt8]] {
    let setup = try TestSetup(seed: seed)
    let phone = try setup.phone("phone", passcode: "1234")
    let session = try phone.openTestSession()
    for number in 0..<20 { _ = try session.add(.genericPassword("item \(number)")) }
    session.invalidate()
    return try files(at: setup.backUp(phone, password: password, as: packaging))
  }

  private func files(at path: String) throws -> [String: [UInt8]] {
    let folder = URL(filePath: path)
    guard let names = FileManager.default.enumerator(atPath: path)?.allObjects as? [String], !names.isEmpty else {
      return [folder.lastPathComponent: Array(try Data(contentsOf: folder))]
    }
    var files: [String: [UInt8]] = [:]
    for name in names { files[name] = (try? Data(contentsOf: folder.appending(path: name))).map { Array($0) } }
    return files
  }

  @Test(
    "Backups with equal random numbers have equal bytes, and other backups differ",
    arguments: TestSetup.Packaging.allCases, [nil, TestSetup.password])
  func twice(packaging: TestSetup.Packaging, password: String?) throws {
    let first = try backUp(seed: "one", password: password, as: packaging)
    #expect(!first.isEmpty && first.values.contains { $0.count > 1000 })
    #expect(try backUp(seed: "one", password: password, as: packaging) == first)
    #expect(try backUp(seed: "another", password: password, as: packaging) != first)
  }
}
