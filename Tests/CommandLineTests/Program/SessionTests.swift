import ArgumentParser
import Foundation
import KeyhaulKit
import SystemPackage
import Testing

@testable import keyhaul

@Suite("What is said where")
struct SessionTests {
  @Test("results go to standard output, everything else to standard error")
  func streams() throws {
    let world = try TestSession(["-v"])
    try world.session.say("result")
    world.session.note("note")
    world.session.detail("detail")
    world.session.detail("bytes", level: 2)
    try world.session.flush()
    #expect(try world.said == "result\n")
    #expect(try world.told == "note\ndetail\n")
  }

  @Test("a call that is shown names the devices' folder, and a file's name that sounds like a call stays quoted")
  func folders() throws {
    let world = try TestSession([])
    let call = "keyhaul device unlock old-phone"
    #expect(world.session.completed(call) == call)
    world.session.shownHomes = ["my phones/it's"]
    let folder = #"'my phones/it'\''s'"#
    #expect(world.session.completed(call) == "keyhaul --home \(folder) device unlock old-phone")
    #expect(
      world.session.completed("--to DEVICE; \(call)") == "--to DEVICE; keyhaul --home \(folder) device unlock old-phone"
    )
    for name in ["a keyhaul device b; touch c #", "it's keyhaul restore b"] {
      let quoted = "keyhaul plan \(ShellQuoting.quote(name)) shows why"
      #expect(world.session.completed(quoted) == quoted)
    }
    world.session.shownHomes.insert("elsewhere")
    #expect(world.session.completed(call) == call)
  }

  @Test("a result that could not be written is an error, also where a note came after it")
  func lost() throws {
    let full = try FileHandle(forWritingTo: URL(filePath: "/dev/full"))
    let session = Session(
      common: try CommonOptions.parse([]), environment: [:], output: full.fileDescriptor, errors: -1)
    try session.say("result")
    session.note("note")
    for _ in 0..<2 {
      #expect(
        ending { try session.flush() }
          == CommandFailure(
            .failed, "could not write the result", why: "standard output: no space left on device",
            try: "free space and run it again", of: .noSpace))
    }
  }

  @Test("a sentence is broken between its words on a terminal, and stays one line for what reads lines")
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

  @Test("a replaced backup that could not be removed is told of even to who wants quiet, and is no good end")
  func replaced() throws {
    let world = try TestSession(["-q"])
    world.session.settleReplaced(nil)
    #expect(world.session.settled(.ok) == .ok)
    #expect(world.session.settled(.partial) == .partial)
    world.session.settleReplaced("/home/old")
    #expect(world.session.settled(.ok) == .doneBut)
    #expect(world.session.settled(.partial) == .doneBut)
    #expect(world.session.settled(.refused) == .refused)
    try world.session.flush()
    #expect(
      try world.told
        == "warning: the previous backup could not be removed\n  why: it is now at /home/old\n  try: delete it\n")
  }

  @Test("quiet leaves results and errors")
  func quiet() throws {
    let world = try TestSession(["-q"])
    try world.session.say("result")
    world.session.note("note")
    world.session.warn("careful", why: "a reason", try: "an action")
    let status = world.session.fail(CommandFailure(.locked, "locked"))
    #expect(status == .locked)
    #expect(try world.said == "result\n")
    #expect(try world.told == "error: locked\n")
  }

  @Test("under --json there is one document, and lines of JSON beside it")
  func json() throws {
    let world = try TestSession(["--json"])
    try world.session.say("text")
    world.session.note("text")
    world.session.progress("Deriving key", phase: "derive-key") { report in
      for done in 1...4 { report.update(done: done * 100, total: 400) }
      report.update(done: 400, total: 400)
    }
    world.session.warn("careful")
    try world.session.answer(["format": "x/1"])
    _ = world.session.fail(CommandFailure(.partial, "half"))
    #expect(try world.said == "{\n  \"format\": \"x/1\"\n}\n")
    let lines = try world.told.split(separator: "\n").map(String.init)
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

  @Test("Status lines are one for each quarter of the work, and none for work without a known end")
  func fewStatusLines() {
    var lines: [String] = []
    let known = StatusLines(phase: "derive-key") { lines.append($0) }
    known.update(done: nil, total: nil)
    for done in 0...1000 { known.update(done: done, total: 1000) }
    #expect(lines.count == 6)
    let endless = StatusLines(phase: "read") { lines.append($0) }
    for done in 0...1000 { endless.update(done: done, total: nil) }
    #expect(lines.count == 6)
  }

  @Test("A command writes at most ten status lines, and none with --no-progress or -q")
  func statusLineLimit() throws {
    for (flags, count) in [([], 10), (["--no-progress"], 0), (["-q"], 0)] as [([String], Int)] {
      let world = try TestSession(["--json"] + flags)
      for phase in ["a", "b", "c", "d"] {
        world.session.progress("Working", phase: phase) { report in
          for done in 0...100 { report.update(done: done, total: 100) }
        }
      }
      #expect(try world.told.split(separator: "\n").count == count)
    }
  }

  @Test("progress says nothing where no terminal shows it, and passes on what the work gives")
  func progress() throws {
    let world = try TestSession()
    let result = world.session.progress("Slow", phase: "slow") { _ in 42 }
    #expect(result == 42)
    #expect(try world.told == "")
  }

  @Test("a report is in its file whole, for its owner alone, or not at all")
  func reportFile() throws {
    let world = try TestSession()
    let path = world.directory.appending(path: "move.plan").path
    try world.session.write(["a": 1], to: path)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "{\n  \"a\": 1\n}\n")
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let failure = ending { try world.session.write(["a": 1], to: world.directory.path + "/no/such/x") }
    #expect(failure?.status == .failed)
    // What is named as a directory becomes no file.
    #expect(status { try world.session.write(["a": 1], to: world.directory.path + "/new/") } == .failed)
    #expect(!FileManager.default.fileExists(atPath: world.directory.path + "/new"))
    let directory = try world.file("folder-like", [])
    try FileManager.default.removeItem(atPath: directory)
    try FileManager.default.createDirectory(atPath: directory + "/inside", withIntermediateDirectories: true)
    #expect(status { try world.session.write(["a": 1], to: directory) } == .failed)
    let left = try FileManager.default.contentsOfDirectory(atPath: world.directory.path).filter { $0.hasSuffix(".tmp") }
    #expect(left == [])
  }

  private func status(_ body: () throws -> Void) -> CommandStatus? { ending(body)?.status }

  @Test("an output is never one of the inputs, by whatever name")
  func sameFile() throws {
    let world = try TestSession()
    let input = try world.file("a", [1])
    let link = world.directory.appending(path: "b").path
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: input)
    #expect(status { try ReportFile.check(link, differsFrom: [input]) } == .usage)
    #expect(status { try ReportFile.check(input, differsFrom: ["x", input]) } == .usage)
    try ReportFile.check(world.directory.path + "/c", differsFrom: [input])
  }
}
