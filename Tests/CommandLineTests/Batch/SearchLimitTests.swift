import Foundation
import Testing

@testable import keyhaul

@Suite("Limits of the search for backups")
struct SearchLimitTests {
  @Test("Folders are searched 64 levels deep, and a result names the limit if there is a deeper folder")
  func depth() throws {
    let sandbox = try PhoneSandbox(named: "a deep shelf") { try $0.backUp("new-phone", to: "one.tar") }
    // The named folder counts as the first level.
    let path = "shelf" + String(repeating: "/d", count: BackupFinder.maximumDepth - 1)
    try sandbox.devices.run("mkdir -p \(path) && cp one.tar \(path)/")
    let reached = try sandbox.keyhaul("inspect shelf --format ndjson")
    #expect(reached.status == 0 && reached.output.contains("\(path)/one.tar"), "\(reached)")
    try sandbox.devices.run("mkdir \(path)/d && cp one.tar \(path)/d/")
    let refused = try sandbox.keyhaul("inspect shelf --format ndjson")
    #expect(refused.status == 3, "\(refused)")
    let rows = try refused.output.split(separator: "\n").map { try sandbox.object(String($0)) }
    #expect(rows.count == 2)
    #expect(rows.map { $0["code"] as? Int } == [14, 0] || rows.map { $0["code"] as? Int } == [0, 14])
    #expect(refused.output.contains("64 folders deep"))
  }

  @Test("A path in a list may have 65,536 bytes, and a path of more than twice that size is always rejected")
  func paths() throws {
    let sandbox = try DeviceSandbox(after: "keyhaul device create phone")
    for (count, status) in [(PathList.maximumByteCount, 3), (2 * PathList.maximumByteCount + 1, 14)] {
      try String(repeating: "a", count: count).write(
        to: sandbox.home.appending(path: "list"), atomically: true, encoding: .utf8)
      let outcome = try sandbox.run("keyhaul inspect --paths-from list")
      #expect(outcome.status == status, "\(count): \(outcome.status) \(outcome.errors.prefix(300))")
    }
  }
}
