import Foundation
import Testing

@testable import keyhaul

@Suite("Reuse of results in a resumed run")
struct ResumeConditionTests {
  /// Returns the codes of a resumed run, and checks that a new run gives the same codes.
  private func codes(of line: String, in tree: BackupTree) throws -> [Int?] {
    let resumed = try tree.results(of: "\(line) --resume results").map { $0["code"] as? Int }
    let repeated = try tree.results(of: line).map { $0["code"] as? Int }
    #expect(resumed == repeated, "\(line)")
    return resumed
  }

  /// Returns the number of results that a resumed run reuses.
  private func reusedCount(of line: String, in tree: BackupTree) throws -> Int {
    let errors = try tree.sandbox.keyhaul("\(line) --format ndjson --resume results").errors
    return errors.firstMatch(of: /(\d+) results? (?:was|were) already there/).flatMap { Int($0.1) } ?? 0
  }

  @Test("Results are not reused if the contents of the list of expectations have changed")
  func expectations() throws {
    let tree = try BackupTree()
    let line = "plan shelf/one shelf/three.tar.gz --to new-phone --expect list.json --password-file .bp"
    func writeExpectation(_ outcome: String) throws {
      let list =
        #"{"format":"plan-expectations/1","expectations":[{"account":"anna","service":"chat.example","expect":"\#(outcome)"}]}"#
      try tree.sandbox.write(Array(list.utf8), to: "list.json")
    }
    try writeExpectation("migrates")
    let metCodes = try codes(of: line, in: tree)
    #expect(try reusedCount(of: line, in: tree) == 2)
    try writeExpectation("stays-behind")
    let unmetCodes = try codes(of: line, in: tree)
    #expect(metCodes == [0, 0] && unmetCodes == [2, 2], "\(metCodes) \(unmetCodes)")
  }

  @Test("Results are not reused if the target was replaced by a device with the same name and revision")
  func target() throws {
    let tree = try BackupTree()
    let sandbox = tree.sandbox
    try sandbox.succeed("device create target --from new-phone -q")
    let revision = try sandbox.object(sandbox.succeed("device show target --json"))["revision"] as? String
    let line = "plan shelf/one --to target --exit-code --password-file .bp"
    #expect(try !sandbox.keyhaul("\(line) --json --resume results").output.isEmpty)
    #expect(try reusedCount(of: line, in: tree) == 1)
    try sandbox.succeed("device delete target --confirm target -q")
    try sandbox.succeed("device create target --from old-phone -q")
    #expect(try sandbox.object(sandbox.succeed("device show target --json"))["revision"] as? String == revision)
    let resumed = try sandbox.keyhaul("\(line) --format csv --resume results")
    #expect(!resumed.errors.contains("already there"), "\(resumed)")
    #expect(try resumed.output == sandbox.keyhaul("\(line) --format csv").output)
    // A new item changes a device's revision. The source device matters too, if it is in the device folder.
    for device in ["target", "old-phone"] {
      #expect(try reusedCount(of: line, in: tree) == 1)
      try sandbox.devices.run("echo x | keyhaul item add \(device) --service s --account \(device) --secret-file - -q")
      #expect(try reusedCount(of: line, in: tree) == 0, "\(device)")
    }
  }

  @Test("Results are reused only with the password that opened the backups in the earlier run")
  func password() throws {
    let tree = try BackupTree()
    let sandbox = tree.sandbox
    try sandbox.write(Array("wrong horse\n".utf8), to: ".wrong")
    let line = "verify shelf/one shelf/three.tar.gz shelf/deep/er/two.zip"
    #expect(try codes(of: "\(line) --password-file .bp", in: tree) == [0, 0, 0])
    #expect(try codes(of: "\(line) --password-file .wrong", in: tree) == [12, 12, 12])
    // Only the latest result of each backup counts, and that is from the wrong password. So each backup is read again.
    #expect(try reusedCount(of: "\(line) --password-file .bp", in: tree) == 0)
    #expect(try reusedCount(of: "\(line) --password-file .bp", in: tree) == 3)
    // The same password from a list is also accepted.
    try sandbox.write(Array("* file:.wrong\n* file:.bp\n".utf8), to: "list")
    #expect(try reusedCount(of: "\(line) --passwords list", in: tree) == 3)
    try sandbox.write(Array("* file:.wrong\n".utf8), to: "list")
    #expect(try codes(of: "\(line) --passwords list", in: tree) == [12, 12, 12])
    // The file has a random name for each password and run. Two of the runs tried the right password, under two names.
    let text = String(decoding: try sandbox.read("results"), as: UTF8.self)
    let passwordNames = text.matches(of: /"password":"([0-9a-f]+)"/).map(\.1)
    #expect(passwordNames.count == 6 && Set(passwordNames).count == 2 && !text.contains("horse"))
  }

  @Test("Results are not reused if the device key has changed")
  func deviceKey() throws {
    let tree = try BackupTree()
    let sandbox = tree.sandbox
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let line = "verify shelf/one --password-file .bp --device-key-file .key"
    try sandbox.write([UInt8](repeating: 7, count: 16), to: ".key")
    #expect(try codes(of: line, in: tree) == [3])
    #expect(try reusedCount(of: line, in: tree) == 1)
    try sandbox.write([UInt8](repeating: 8, count: 16), to: ".key")
    #expect(try reusedCount(of: line, in: tree) == 0)
    #expect(try reusedCount(of: "\(line) --sealed", in: tree) == 0)
  }

  @Test("A resumed run continues if the first line of its file was cut off, as by a full disk", arguments: 0..<12)
  func cutLine(step: Int) throws {
    let tree = try BackupTree()
    let sandbox = tree.sandbox
    let line = "verify shelf/one shelf/three.tar.gz --password-file .bp --format ndjson --resume results"
    let complete = try sandbox.keyhaul(line)
    let bytes = try sandbox.read("results")
    let lineLength = try #require(bytes.firstIndex(of: UInt8(ascii: "\n")))
    // The first four lengths are 1 to 4 bytes, and the others grow to almost the complete line.
    let count = step < 4 ? step + 1 : lineLength - (11 - step) * lineLength / 12
    try sandbox.write(Array(bytes.prefix(min(count, lineLength - 1))), to: "results")
    for isRepeated in [false, true] {
      let resumed = try sandbox.keyhaul(line)
      #expect(resumed.status == 0 && resumed.output == complete.output, "\(count): \(resumed)")
      #expect(resumed.errors.contains("already there") == isRepeated, "\(count): \(resumed)")
    }
  }

  @Test("--resume refuses a file whose first line is not a result, and does not change the file")
  func otherFile() throws {
    let tree = try BackupTree()
    for text in ["{\n  \"a\": 1\n}\n", "{\"format\":\n", "[]", "\n"] {
      try tree.sandbox.write(Array(text.utf8), to: "notes")
      let outcome = try tree.sandbox.keyhaul("inspect shelf/one --resume notes")
      #expect(outcome.status == 14, "\(text): \(outcome)")
      #expect(try tree.sandbox.read("notes") == Array(text.utf8))
    }
  }
}
