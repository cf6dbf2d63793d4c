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

  /// Returns a session whose folder `reports` has one file, and the path of this file.
  private func sessionWithReport() throws -> (session: TestSession, report: String) {
    let session = try TestSession()
    let directory = session.directory.appending(path: "reports")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return (session, try session.file("reports/x.json", Self.old))
  }

  /// Returns the sorted names of the files in `reports`.
  private func names(_ session: TestSession) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: session.directory.path + "/reports").sorted()
  }

  private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

  @Test(
    "After a signal that stops the program, the old report remains and nothing else",
    arguments: [SIGINT, SIGTERM, SIGHUP])
  func signals(signal: Int32) async throws {
    let (session, report) = try sessionWithReport()
    await #expect(processExitsWith: .exitCode(128 + signal)) { [report = report as String, signal = signal as Int32] in
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, signal)
      pthread_sigmask(SIG_UNBLOCK, &signals, nil)
      Interruption.install()
      let failure = thrownError {
        try ReportFile.write(to: report) { (portion) throws(CommandError) in
          try [1 as UInt8].withRawBytes(portion)
          raise(signal)
          try [2 as UInt8].withRawBytes(portion)
        }
      }
      exit(failure?.status.code ?? 0)
    }
    #expect(try names(session) == ["x.json"])
    #expect(try bytes(report) == Self.old)
  }

  @Test("After SIGKILL, the old report remains, and the next report deletes the leftover")
  func killed() async throws {
    let (session, report) = try sessionWithReport()
    await #expect(processExitsWith: .signal(SIGKILL)) { [report = report as String] in
      try ReportFile.write(to: report) { (portion) throws(CommandError) in
        try [1 as UInt8].withRawBytes(portion)
        kill(getpid(), SIGKILL)
      }
    }
    let leftovers = try names(session)
    #expect(
      leftovers.count == 2 && leftovers.first?.wholeMatch(of: /\.x\.json\.[0-9a-f]{1,8}\.tmp/) != nil, "\(leftovers)")
    #expect(try bytes(report) == Self.old)
    // Writing another report in the folder deletes only leftovers of that report.
    try ReportFile.write([3], to: session.directory.path + "/reports/y.json")
    #expect(try names(session).count == 3)
    try ReportFile.write([4], to: report)
    #expect(try names(session) == ["x.json", "y.json"])
    #expect(try bytes(report) == [4])
  }

  @Test("Only leftovers of the same report are deleted, but no other names, folders, links, pipes or files in use")
  func others() throws {
    let (session, report) = try sessionWithReport()
    let directory = session.directory.path + "/reports/"
    let otherNames = [
      ".x.json.tmp", ".x.json..tmp", ".x.json.12g.tmp", ".x.json.123456789.tmp", ".x.json.12.tmp.gz", "x.json.12.tmp",
      ".y.json.12.tmp", "x.json.4711.tmp",
    ]
    for name in otherNames { _ = try session.file("reports/\(name)", [1]) }
    try FileManager.default.createDirectory(atPath: directory + ".x.json.1.tmp/in", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory + ".x.json.2.tmp", withDestinationPath: "x.json.12.tmp")
    #expect(mkfifo(directory + ".x.json.3.tmp", 0o600) == 0)
    let descriptor = open(try session.file("reports/.x.json.4.tmp", [1]), O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    #expect(flock(descriptor, LOCK_EX) == 0)
    let before = try names(session)
    _ = try session.file("reports/.x.json.5f.tmp", [1])
    try ReportFile.write([2], to: report)
    #expect(try names(session) == before)
    #expect(try bytes(report) == [2])
    // The other run has ended.
    flock(descriptor, LOCK_UN)
    try ReportFile.write([3], to: report)
    #expect(try names(session) == before.filter { $0 != ".x.json.4.tmp" })
  }
}
