import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Interrupted writing of a report")
struct ReportLeftoverTests {
  private static let old = Array("old".utf8)

  /// A directory with a report in it; the names in it, sorted, tell what was left.
  private func directory() throws -> (TestSession, report: String) {
    let sandbox = try TestSession()
    let directory = sandbox.directory.appending(path: "reports")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return (sandbox, try sandbox.file("reports/x.json", Self.old))
  }

  private func names(_ sandbox: TestSession) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: sandbox.directory.path + "/reports").sorted()
  }

  private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

  @Test(
    "After a signal that stops the program, the old report remains and nothing else",
    arguments: [SIGINT, SIGTERM, SIGHUP])
  func signals(number: Int32) async throws {
    let (sandbox, report) = try directory()
    await #expect(processExitsWith: .exitCode(128 + number)) { [report = report as String, number = number as Int32] in
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, number)
      pthread_sigmask(SIG_UNBLOCK, &signals, nil)
      Interruption.install()
      let failure = thrownError {
        try ReportFile.write(to: report) { (portion) throws(CommandError) in
          try [1 as UInt8].withRawBytes(portion)
          raise(number)
          try [2 as UInt8].withRawBytes(portion)
        }
      }
      exit(failure?.status.code ?? 0)
    }
    #expect(try names(sandbox) == ["x.json"])
    #expect(try bytes(report) == Self.old)
  }

  @Test("After SIGKILL, the old report remains, and the next report deletes the leftover")
  func killed() async throws {
    let (sandbox, report) = try directory()
    await #expect(processExitsWith: .signal(SIGKILL)) { [report = report as String] in
      try ReportFile.write(to: report) { (portion) throws(CommandError) in
        try [1 as UInt8].withRawBytes(portion)
        kill(getpid(), SIGKILL)
      }
    }
    let left = try names(sandbox)
    #expect(left.count == 2 && left.first?.wholeMatch(of: /\.x\.json\.[0-9a-f]{1,8}\.tmp/) != nil, "\(left)")
    #expect(try bytes(report) == Self.old)
    // Another report beside it clears up its own alone.
    try ReportFile.write([3], to: sandbox.directory.path + "/reports/y.json")
    #expect(try names(sandbox).count == 3)
    try ReportFile.write([4], to: report)
    #expect(try names(sandbox) == ["x.json", "y.json"])
    #expect(try bytes(report) == [4])
  }

  @Test("Only own leftovers are deleted: no other names, folders, links, pipes or files in use")
  func others() throws {
    let (sandbox, report) = try directory()
    let directory = sandbox.directory.path + "/reports/"
    let foreign = [
      ".x.json.tmp", ".x.json..tmp", ".x.json.12g.tmp", ".x.json.123456789.tmp", ".x.json.12.tmp.gz", "x.json.12.tmp",
      ".y.json.12.tmp", "x.json.4711.tmp",
    ]
    for name in foreign { _ = try sandbox.file("reports/\(name)", [1]) }
    try FileManager.default.createDirectory(atPath: directory + ".x.json.1.tmp/in", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory + ".x.json.2.tmp", withDestinationPath: "x.json.12.tmp")
    #expect(mkfifo(directory + ".x.json.3.tmp", 0o600) == 0)
    let held = open(try sandbox.file("reports/.x.json.4.tmp", [1]), O_RDONLY | O_CLOEXEC)
    defer { close(held) }
    #expect(flock(held, LOCK_EX) == 0)
    let before = try names(sandbox)
    _ = try sandbox.file("reports/.x.json.5f.tmp", [1])
    try ReportFile.write([2], to: report)
    #expect(try names(sandbox) == before)
    #expect(try bytes(report) == [2])
    // The other run has ended.
    flock(held, LOCK_UN)
    try ReportFile.write([3], to: report)
    #expect(try names(sandbox) == before.filter { $0 != ".x.json.4.tmp" })
  }
}
