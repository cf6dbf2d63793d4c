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
  private static let oldReport = Array("old".utf8)

  /// Returns a session whose folder `reports` has one report, and the path of this report.
  private func sessionWithReport() throws -> (session: TestSession, report: String) {
    let session = try TestSession()
    let directory = session.directory.appending(path: "reports")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return (session, try session.file("reports/x.json", Self.oldReport))
  }

  /// Returns the sorted names of the files in `reports`.
  private func reportNames(in session: TestSession) throws -> [String] {
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
        try OutputFile.write(to: report) { (chunk) throws(CommandError) in
          try [1 as UInt8].withRawBytes(chunk)
          raise(signal)
          try [2 as UInt8].withRawBytes(chunk)
        }
      }
      exit(failure?.status.code ?? 0)
    }
    #expect(try reportNames(in: session) == ["x.json"])
    #expect(try bytes(report) == Self.oldReport)
  }

  @Test("After SIGKILL, the old report remains, and the next report deletes the leftover")
  func killed() async throws {
    let (session, report) = try sessionWithReport()
    await #expect(processExitsWith: .signal(SIGKILL)) { [report = report as String] in
      try OutputFile.write(to: report) { (chunk) throws(CommandError) in
        try [1 as UInt8].withRawBytes(chunk)
        kill(getpid(), SIGKILL)
      }
    }
    let leftovers = try reportNames(in: session)
    #expect(
      leftovers.count == 2 && leftovers.first?.wholeMatch(of: /\.x\.json\.[0-9a-f]{1,8}\.tmp/) != nil, "\(leftovers)")
    #expect(try bytes(report) == Self.oldReport)
    // Writing another report in the folder deletes only leftovers of that report.
    try OutputFile.write([3], to: session.directory.path + "/reports/y.json")
    #expect(try reportNames(in: session).count == 3)
    try OutputFile.write([4], to: report)
    #expect(try reportNames(in: session) == ["x.json", "y.json"])
    #expect(try bytes(report) == [4])
  }

  @Test("Writing a report deletes its own leftovers, but no other files, folders, links, pipes or files in use")
  func otherFiles() throws {
    let (session, report) = try sessionWithReport()
    let directory = session.directory.path + "/reports/"
    let otherNames = [
      ".x.json.tmp", ".x.json..tmp", ".x.json.12g.tmp", ".x.json.123456789.tmp", ".x.json.12.tmp.gz", "x.json.12.tmp",
      ".y.json.12.tmp", "x.json.4711.tmp",
    ]
    for name in otherNames { _ = try session.file("reports/\(name)", [1]) }
    let (folder, link, pipe, fileInUse) = (".x.json.1.tmp", ".x.json.2.tmp", ".x.json.3.tmp", ".x.json.4.tmp")
    try FileManager.default.createDirectory(atPath: directory + folder + "/in", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: directory + link, withDestinationPath: "x.json.12.tmp")
    #expect(mkfifo(directory + pipe, 0o600) == 0)
    let descriptor = open(try session.file("reports/\(fileInUse)", [1]), O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    #expect(flock(descriptor, LOCK_EX) == 0)
    let namesBefore = try reportNames(in: session)
    _ = try session.file("reports/.x.json.5f.tmp", [1])
    try OutputFile.write([2], to: report)
    #expect(try reportNames(in: session) == namesBefore)
    #expect(try bytes(report) == [2])
    // The lock stands for another run. When that run has ended, its leftover is deleted too.
    flock(descriptor, LOCK_UN)
    try OutputFile.write([3], to: report)
    #expect(try reportNames(in: session) == namesBefore.filter { $0 != fileInUse })
  }
}
