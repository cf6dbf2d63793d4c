import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

/// A kind of file that a command reads, with its size limit.
struct FileSizeLimit: CustomTestStringConvertible, Sendable {
  let name: String
  let byteCount: Int
  /// The first bytes of the file, by which the command recognizes its kind.
  let start: String
  /// The command that reads a file with the name `file`.
  let command: String

  var testDescription: String { name }

  static let all = [
    FileSizeLimit(
      name: "a saved plan", byteCount: 128 << 20, start: "{", command: "restore x --to phone --plan file"),
    FileSizeLimit(
      name: "a list of expectations", byteCount: 16 << 20, start: "{", command: "plan phone --to phone --expect file"),
    FileSizeLimit(
      name: "a list of items to restore", byteCount: 16 << 20, start: "{", command: "restore x --to phone --only file"),
    FileSizeLimit(name: "a dump", byteCount: 64 << 20, start: "{", command: "inspect file"),
    FileSizeLimit(
      name: "a keychain's database", byteCount: 256 << 20, start: "SQLite format 3\u{0}", command: "inspect file"),
    FileSizeLimit(
      name: "a description of a device", byteCount: 512 << 20, start: "{", command: "device create new --from file"),
  ]
}

@Suite("File size limits")
struct FileSizeLimitTests {
  /// Writes a sparse file that is larger than a limit by this number of bytes.
  private func write(_ limit: FileSizeLimit, adding count: Int, in sandbox: DeviceSandbox) throws {
    let file = sandbox.home.appending(path: "file")
    try Data(limit.start.utf8).write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    try handle.truncate(atOffset: UInt64(limit.byteCount + count))
    try handle.close()
  }

  @Test("A file at the limit is rejected for its content, a longer file for its size", arguments: FileSizeLimit.all)
  func sizes(limit: FileSizeLimit) throws {
    let sandbox = try DeviceSandbox(after: "keyhaul device create phone")
    for (count, isOver) in [(0, false), (1, true)] {
      try write(limit, adding: count, in: sandbox)
      let outcome = try sandbox.run("keyhaul \(limit.command)")
      // The content is damaged, refused or wrong usage, depending on the command.
      #expect([13, 14, 64].contains(outcome.status), "\(outcome)")
      #expect(outcome.errors.contains(HumanReadable.grouped(limit.byteCount)) == isOver, "\(outcome.errors)")
    }
  }

  @Test("A class key file of 65,536 bytes is rejected for its content, a longer file for its size")
  func classKeys() throws {
    for count in [ClassKeyFile.maximumByteCount, ClassKeyFile.maximumByteCount + 1] {
      let error = #expect(throws: KeyhaulError.self) {
        _ = try ClassKeyFile.keys(in: SensitiveBytes(copying: [UInt8](repeating: 0x20, count: count)))
      }
      #expect((error?.code == .databaseOverLimit) == (count > 65_536))
    }
  }
}
