import ArgumentParser
import Foundation
import KeyhaulKit
import SystemPackage
import Testing

@testable import keyhaul

@Suite("Session output")
struct SessionTests {
  @Test("Results go to standard output, everything else to standard error")
  func streams() throws {
    let test = try TestSession(["-v"])
    try test.session.print("result")
    test.session.info("note")
    test.session.debug("detail")
    test.session.debug("bytes", level: 2)
    try test.session.flush()
    #expect(try test.output == "result\n")
    #expect(try test.messages == "note\ndetail\n")
  }

  @Test("A suggested command names the device folder, and a quoted file name is never changed")
  func deviceFolder() throws {
    let test = try TestSession()
    let command = "keyhaul device unlock old-phone"
    #expect(test.session.addingHomeOption(to: command) == command)
    test.session.deviceFoldersToShow = ["my phones/it's"]
    let folder = #"'my phones/it'\''s'"#
    #expect(test.session.addingHomeOption(to: command) == "keyhaul --home \(folder) device unlock old-phone")
    #expect(
      test.session.addingHomeOption(to: "--to DEVICE; \(command)")
        == "--to DEVICE; keyhaul --home \(folder) device unlock old-phone"
    )
    for name in ["a keyhaul device b; touch c #", "it's keyhaul restore b"] {
      let quoted = "keyhaul plan \(ShellQuoting.quote(name)) shows why"
      #expect(test.session.addingHomeOption(to: quoted) == quoted)
    }
    // With two device folders, it is unknown which one the command means.
    test.session.deviceFoldersToShow.insert("elsewhere")
    #expect(test.session.addingHomeOption(to: command) == command)
  }

  @Test("A result that could not be written is an error, even if a message followed")
  func unwritableResult() throws {
    let full = try FileHandle(forWritingTo: URL(filePath: "/dev/full"))
    let session = Session(
      common: try CommonOptions.parse([]), environment: [:], output: full.fileDescriptor, errors: -1)
    try session.print("result")
    session.info("note")
    // The error stays, so a second flush throws it again.
    for _ in 0..<2 {
      #expect(
        thrownError { try session.flush() }
          == CommandError(
            .failed, "could not write the result", why: "standard output: no space left on device",
            try: "free space and run it again", of: .noSpace))
    }
  }

  @Test("A sentence is wrapped between words on a terminal, and is one line elsewhere")
  func wrapped() {
    var style = TextStyle.plain
    style.width = 20
    let sentence = "Rekeyed family.backup. The old password no longer opens it."
    #expect(
      Session.wrapped(sentence, isOnTerminal: true, style: style) == [
        "Rekeyed", "family.backup. The", "old password no", "longer opens it.",
      ])
    #expect(Session.wrapped(sentence, isOnTerminal: false, style: style) == [sentence])
    #expect(Session.wrapped("short", isOnTerminal: true, style: style) == ["short"])
  }

  @Test("A replaced backup that could not be removed is reported even with -q, and changes the exit code")
  func replaced() throws {
    let test = try TestSession(["-q"])
    test.session.warnIfOldBackupRemains(nil)
    #expect(test.session.finalStatus(.ok) == .ok)
    #expect(test.session.finalStatus(.partial) == .partial)
    test.session.warnIfOldBackupRemains("/home/old")
    #expect(test.session.finalStatus(.ok) == .doneBut)
    #expect(test.session.finalStatus(.partial) == .doneBut)
    #expect(test.session.finalStatus(.refused) == .refused)
    try test.session.flush()
    #expect(
      try test.messages
        == "warning: the previous backup could not be removed\n  why: it is now at /home/old\n  try: delete it\n")
  }

  @Test("-q keeps results and errors")
  func quiet() throws {
    let test = try TestSession(["-q"])
    try test.session.print("result")
    test.session.info("note")
    test.session.warn("careful", why: "a reason", try: "an action")
    let status = test.session.fail(CommandError(.locked, "locked"))
    #expect(status == .locked)
    #expect(try test.output == "result\n")
    #expect(try test.messages == "error: locked\n")
  }

  @Test("With --json, there is one document, and messages are lines of JSON")
  func json() throws {
    let test = try TestSession(["--json"])
    try test.session.print("text")
    test.session.info("text")
    test.session.progress("Deriving key", phase: "derive-key") { report in
      for done in 1...4 { report.update(done: done * 100, total: 400) }
      report.update(done: 400, total: 400)
    }
    test.session.warn("careful")
    try test.session.writeDocument(["format": "x/1"])
    _ = test.session.fail(CommandError(.partial, "half"))
    #expect(try test.output == "{\n  \"format\": \"x/1\"\n}\n")
    let lines = try test.messages.split(separator: "\n").map(String.init)
    #expect(
      lines == [
        #"{"message_type":"status","phase":"derive-key"}"#,
        #"{"message_type":"status","phase":"derive-key","done":100,"total":400}"#,
        #"{"message_type":"status","phase":"derive-key","done":200,"total":400}"#,
        #"{"message_type":"status","phase":"derive-key","done":300,"total":400}"#,
        #"{"message_type":"status","phase":"derive-key","done":400,"total":400}"#,
        #"{"message_type":"warning","message":"careful"}"#,
        #"{"message_type":"exit_error","code":3,"id":"partial","message":"half"}"#,
      ])
  }

  @Test("A status line is written after each quarter of the work, and none if the total is unknown")
  func fewStatusLines() {
    var lines: [String] = []
    let finite = StatusLines(phase: "derive-key") { lines.append($0) }
    finite.update(done: nil, total: nil)
    for done in 0...1000 { finite.update(done: done, total: 1000) }
    // One line at the start, one when progress begins, and one after each quarter.
    #expect(lines.count == 6)
    let endless = StatusLines(phase: "read") { lines.append($0) }
    for done in 0...1000 { endless.update(done: done, total: nil) }
    #expect(lines.count == 6)
  }

  @Test("A command writes at most ten status lines, and none with --no-progress or -q")
  func statusLineLimit() throws {
    let cases: [(flags: [String], lineCount: Int)] = [([], 10), (["--no-progress"], 0), (["-q"], 0)]
    for (flags, lineCount) in cases {
      let test = try TestSession(["--json"] + flags)
      for phase in ["a", "b", "c", "d"] {
        test.session.progress("Working", phase: phase) { report in
          for done in 0...100 { report.update(done: done, total: 100) }
        }
      }
      #expect(try test.messages.split(separator: "\n").count == lineCount)
    }
  }

  @Test("Without a terminal, progress prints nothing, and the work's result is returned")
  func progress() throws {
    let test = try TestSession()
    let result = test.session.progress("Slow", phase: "slow") { _ in 42 }
    #expect(result == 42)
    #expect(try test.messages == "")
  }

  @Test("A report is written completely or not at all, and is readable only by its owner")
  func reportFile() throws {
    let test = try TestSession()
    let path = test.directory.appending(path: "move.plan").path
    try test.session.writeDocument(["a": 1], to: path)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "{\n  \"a\": 1\n}\n")
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let failure = thrownError { try test.session.writeDocument(["a": 1], to: test.directory.path + "/no/such/x") }
    #expect(failure?.status == .failed)
    // No file is created at a path that ends with a slash.
    #expect(status { try test.session.writeDocument(["a": 1], to: test.directory.path + "/new/") } == .failed)
    #expect(!FileManager.default.fileExists(atPath: test.directory.path + "/new"))
    let directory = test.directory.appending(path: "folder").path
    try FileManager.default.createDirectory(atPath: directory + "/inside", withIntermediateDirectories: true)
    #expect(status { try test.session.writeDocument(["a": 1], to: directory) } == .failed)
    let leftovers = try FileManager.default.contentsOfDirectory(atPath: test.directory.path).filter {
      $0.hasSuffix(".tmp")
    }
    #expect(leftovers == [])
  }

  private func status(_ body: () throws -> Void) -> CommandExitStatus? { thrownError(body)?.status }

  @Test("An output cannot be an input under any name")
  func sameFile() throws {
    let test = try TestSession()
    let input = try test.file("a", [1])
    let link = test.directory.appending(path: "b").path
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: input)
    #expect(status { try OutputFile.check(link, differsFrom: [input]) } == .usage)
    #expect(status { try OutputFile.check(input, differsFrom: ["x", input]) } == .usage)
    try OutputFile.check(test.directory.path + "/c", differsFrom: [input])
  }
}
