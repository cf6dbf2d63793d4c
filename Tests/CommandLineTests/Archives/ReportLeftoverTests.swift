import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("A report whose writing ends early")
struct ReportLeftoverTests {
  private static let old = Array("old".utf8)

  /// A directory with a report in it; the names in it, sorted, tell what was left.
  private func directory() throws -> (TestSession, report: String) {
    let world = try TestSession()
    let directory = world.directory.appending(path: "reports")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return (world, try world.file("reports/x.json", Self.old))
  }

  private func names(_ world: TestSession) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: world.directory.path + "/reports").sorted()
  }

  private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

  @Test("by a signal that asks to stop leaves the old one and nothing else", arguments: [SIGINT, SIGTERM, SIGHUP])
  func signals(number: Int32) async throws {
    let (world, report) = try directory()
    await #expect(processExitsWith: .exitCode(128 + number)) { [report = report as String, number = number as Int32] in
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, number)
      pthread_sigmask(SIG_UNBLOCK, &signals, nil)
      Interruption.install()
      let failure = ending {
        try ReportFile.write(to: report) { (portion) throws(CommandFailure) in
          try [1 as UInt8].withRawBytes(portion)
          raise(number)
          try [2 as UInt8].withRawBytes(portion)
        }
      }
      exit(failure?.status.code ?? 0)
    }
    #expect(try names(world) == ["x.json"])
    #expect(try bytes(report) == Self.old)
  }

  @Test("by SIGKILL leaves the old one, and a part that the next report clears up")
  func killed() async throws {
    let (world, report) = try directory()
    await #expect(processExitsWith: .signal(SIGKILL)) { [report = report as String] in
      try ReportFile.write(to: report) { (portion) throws(CommandFailure) in
        try [1 as UInt8].withRawBytes(portion)
        kill(getpid(), SIGKILL)
      }
    }
    let left = try names(world)
    #expect(left.count == 2 && left.first?.wholeMatch(of: /\.x\.json\.[0-9a-f]{1,8}\.tmp/) != nil, "\(left)")
    #expect(try bytes(report) == Self.old)
    // Another report beside it clears up its own alone.
    try ReportFile.write([3], to: world.directory.path + "/reports/y.json")
    #expect(try names(world).count == 3)
    try ReportFile.write([4], to: report)
    #expect(try names(world) == ["x.json", "y.json"])
    #expect(try bytes(report) == [4])
  }

  @Test("clears up nothing that is not its own: other names, folders, links, pipes, and what another run still writes")
  func others() throws {
    let (world, report) = try directory()
    let directory = world.directory.path + "/reports/"
    let foreign = [
      ".x.json.tmp", ".x.json..tmp", ".x.json.12g.tmp", ".x.json.123456789.tmp", ".x.json.12.tmp.gz", "x.json.12.tmp",
      ".y.json.12.tmp", "x.json.4711.tmp",
    ]
    for name in foreign { _ = try world.file("reports/\(name)", [1]) }
    try FileManager.default.createDirectory(atPath: directory + ".x.json.1.tmp/in", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory + ".x.json.2.tmp", withDestinationPath: "x.json.12.tmp")
    #expect(mkfifo(directory + ".x.json.3.tmp", 0o600) == 0)
    let held = open(try world.file("reports/.x.json.4.tmp", [1]), O_RDONLY | O_CLOEXEC)
    defer { close(held) }
    #expect(flock(held, LOCK_EX) == 0)
    let before = try names(world)
    _ = try world.file("reports/.x.json.5f.tmp", [1])
    try ReportFile.write([2], to: report)
    #expect(try names(world) == before)
    #expect(try bytes(report) == [2])
    // The other run has ended.
    flock(held, LOCK_UN)
    try ReportFile.write([3], to: report)
    #expect(try names(world) == before.filter { $0 != ".x.json.4.tmp" })
  }
}
