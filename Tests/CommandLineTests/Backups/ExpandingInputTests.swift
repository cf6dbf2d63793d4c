import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Small backups with excessive contents")
struct ExpandingInputTests {
  /// A replacement for one file of a backup without a password.
  struct CostlyFile: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let path: String
    let bytes: @Sendable (_ original: [UInt8]) -> [UInt8]
    /// The expected exit status of the commands `inspect`, `verify` and `restore`.
    let inspect: CommandExitStatus
    let verify: CommandExitStatus
    let restore: CommandExitStatus
    /// A part of the expected message.
    let message: String

    /// A plan uses the readable part of a damaged backup.
    var plan: CommandExitStatus { restore == .damaged ? .partial : restore }
  }

  static let costlyFiles: [CostlyFile] = [
    CostlyFile(
      testDescription: "Info.plist of nested arrays", path: "Info.plist", bytes: { _ in CostlyPlists.nestedArrays },
      inspect: .ok, verify: .refused, restore: .ok, message: "Info.plist could not be read"),
    CostlyFile(
      testDescription: "Status.plist of nested arrays", path: "Status.plist", bytes: { _ in CostlyPlists.nestedArrays },
      inspect: .ok, verify: .refused, restore: .refused, message: "Status.plist"),
    CostlyFile(
      testDescription: "Manifest.plist of nested arrays", path: "Manifest.plist",
      bytes: { _ in CostlyPlists.nestedArrays }, inspect: .refused, verify: .refused, restore: .refused,
      message: "shared values"),
    CostlyFile(
      testDescription: "Info.plist of twenty million elements", path: "Info.plist",
      bytes: { _ in CostlyPlists.manyElements(20_000_000) }, inspect: .ok, verify: .refused, restore: .ok,
      message: "Info.plist could not be read"),
    CostlyFile(
      testDescription: "a cut Info.plist", path: "Info.plist", bytes: { $0.dropLast(40) }, inspect: .ok,
      verify: .damaged, restore: .ok, message: "Info.plist could not be read"),
    CostlyFile(
      testDescription: "a cut Status.plist", path: "Status.plist", bytes: { $0.dropLast(40) }, inspect: .ok,
      verify: .damaged, restore: .damaged, message: "Status.plist"),
    CostlyFile(
      testDescription: "190,000 items that share one blob", path: PhoneSandbox.keychainPath,
      bytes: { _ in CostlyPlists.sharedItem(entries: 190_000, blob: [UInt8](repeating: 7, count: 64 << 10)) },
      inspect: .refused, verify: .refused, restore: .refused, message: "its items share bytes"),
  ]

  /// The limit of the program's address space in KiB: a few times the size that it has at its start.
  private static let addressSpaceLimit = 1_500_000

  @Test("A costly backup is read, checked and restored within 1.5 GB of memory, or rejected", arguments: costlyFiles)
  func costlyFile(file: CostlyFile) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q --yes")
    try sandbox.write(file.bytes(try sandbox.read("b/\(file.path)")), to: "b/\(file.path)")
    let deviceBefore = try sandbox.contents(of: "old-phone")
    let cases: [(line: String, status: CommandExitStatus)] = [
      ("inspect b/ --list", file.inspect), ("verify b/", file.verify),
      ("plan b/ --to old-phone", file.plan), ("restore b/ --to old-phone --yes", file.restore),
    ]
    for (line, status) in cases {
      let outcome = try sandbox.devices.run("ulimit -v \(Self.addressSpaceLimit); keyhaul \(line)")
      #expect(outcome.status == status.code, "\(line): \(outcome)")
      if line != "verify b/" { #expect(unwrapped(outcome.errors).contains(file.message), "\(line): \(outcome)") }
    }
    if file.restore != .ok { #expect(try sandbox.contents(of: "old-phone") == deviceBefore) }
  }

  @Test("A sparse file of 40 GB is rejected, or the backup is read without the file")
  func sparse() throws {
    let cases: [(name: String, status: CommandExitStatus)] = [
      ("Info.plist", .partial), ("Status.plist", .partial), ("Manifest.plist", .refused), ("Manifest.db", .refused),
      (PhoneSandbox.keychainPath, .refused),
    ]
    for (name, status) in cases {
      let sandbox = try PhoneSandbox()
      try sandbox.backUp(to: "b/")
      let url = sandbox.home.appending(path: "b/\(name)")
      let file = try FileHandle(forWritingTo: url)
      try file.truncate(atOffset: 40 << 30)
      try file.close()
      let outcome = try sandbox.devices.run(
        "ulimit -v \(Self.addressSpaceLimit); keyhaul inspect b/ --password-file .bp")
      #expect(outcome.status == status.code, "\(name): \(outcome)")
      #expect(unwrapped(outcome.errors).contains("\(name) has 42,949,672,960 bytes (limit: "), "\(name): \(outcome)")
    }
  }
}
