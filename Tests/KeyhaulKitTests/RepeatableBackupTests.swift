import Basics
import Foundation
import TestSupport
import Testing
import VirtualDevice

@Suite("A backup made twice")
struct RepeatableBackupTests {
  /// Where the randomness is the same, the clock stands still and the folders are others.
  private func backUp(seed: String, password: String?, as packaging: Desk.Packaging) throws -> [String: [UInt8]] {
    let desk = try Desk(seed: seed)
    let phone = try desk.phone("phone", passcode: "1234")
    let session = try phone.held()
    for number in 0..<20 { _ = try session.add(.genericPassword("item \(number)")) }
    session.invalidate()
    return try files(at: desk.backUp(phone, password: password, as: packaging))
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
    "of the same phone, password and randomness is the same to the byte, and of another randomness another",
    arguments: Desk.Packaging.allCases, [nil, Desk.password])
  func twice(packaging: Desk.Packaging, password: String?) throws {
    let first = try backUp(seed: "one", password: password, as: packaging)
    #expect(!first.isEmpty && first.values.contains { $0.count > 1000 })
    #expect(try backUp(seed: "one", password: password, as: packaging) == first)
    #expect(try backUp(seed: "another", password: password, as: packaging) != first)
  }
}
