import Foundation
import Testing

@testable import keyhaul

@Suite("Where backups are looked for, at a limit and above it")
struct PlaceLimitTests {
  @Test("a folder is searched 64 deep, and a deeper one has a row that says so")
  func depth() throws {
    let world = try MoveWorld(named: "a deep shelf") { try $0.backUp("new-phone", to: "one.tar") }
    // The folder that is named is the first of them.
    let path = "shelf" + String(repeating: "/d", count: BackupFinder.maximumDepth - 1)
    try world.devices.run("mkdir -p \(path) && cp one.tar \(path)/")
    let found = try world.keyhaul("inspect shelf --format ndjson")
    #expect(found.status == 0 && found.output.contains("\(path)/one.tar"), "\(found)")
    try world.devices.run("mkdir \(path)/d && cp one.tar \(path)/d/")
    let refused = try world.keyhaul("inspect shelf --format ndjson")
    #expect(refused.status == 3, "\(refused)")
    let rows = try refused.output.split(separator: "\n").map { try world.object(String($0)) }
    #expect(rows.count == 2)
    #expect(rows.map { $0["code"] as? Int } == [14, 0] || rows.map { $0["code"] as? Int } == [0, 14])
    #expect(refused.output.contains("64 folders deep"))
  }

  @Test("a path of a list has 65,536 bytes at most, or where it is told late twice as many")
  func paths() throws {
    let world = try DeviceWorld(after: "keyhaul device create phone")
    for (count, status) in [(PathList.maximumByteCount, 3), (2 * PathList.maximumByteCount + 1, 14)] {
      try String(repeating: "a", count: count).write(
        to: world.home.appending(path: "list"), atomically: true, encoding: .utf8)
      let outcome = try world.run("keyhaul inspect --paths-from list")
      #expect(outcome.status == status, "\(count): \(outcome.status) \(outcome.errors.prefix(300))")
    }
  }
}
