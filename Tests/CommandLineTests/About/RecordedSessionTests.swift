import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Recorded command-line sessions")
struct RecordedSessionTests {
  static let directory = Repository.root.appending(path: "Tests/CommandLineTests/Sessions")
  static let names =
    ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).filter { $0.hasSuffix(".txt") }
    .sorted()

  @Test("Commands print what the recorded session shows", arguments: names)
  func session(name: String) throws {
    let script = SessionScript(try String(contentsOf: Self.directory.appending(path: name), encoding: .utf8))
    let sandbox = try DeviceSandbox()
    #expect(!script.steps.isEmpty)
    for step in script.steps {
      let typed = step.typed.isEmpty && step.terminal.isEmpty ? nil : step.typed
      let outcome = try sandbox.run(step.command, typed: typed)
      let location = "\(name), line \(step.lineNumber)"
      #expect(outcome.status == step.status, "\(location): \(step.command)")
      #expect(SessionScript.matches(outcome.output, step.output), "\(location), output:\n\(outcome.output)")
      #expect(SessionScript.matches(outcome.errors, step.errors), "\(location), errors:\n\(outcome.errors)")
      if typed != nil {
        #expect(SessionScript.matches(outcome.terminal, step.terminal), "\(location), terminal:\n\(outcome.terminal)")
      }
    }
  }

  @Test("A recorded session can type at a prompt")
  func typed() throws {
    let sandbox = try DeviceSandbox()
    let line = #"printf 'Name: ' > /dev/tty; read name < /dev/tty; echo "I am $name"; exit 3"#
    let outcome = try sandbox.run(line, typed: ["anna"])
    #expect(outcome == .init(output: "I am anna\n", errors: "", status: 3, terminal: "Name: anna\n"))
    let withoutTerminal = try sandbox.run(": < /dev/tty")
    #expect(withoutTerminal.status != 0)
  }

  @Test("The recorded sessions are found in their folder")
  func all() { #expect(Self.names.contains("explain.txt") && Self.names.contains("usage.txt")) }

  @Test("In a recorded session, [..] matches any part of a line")
  func wildcard() {
    #expect(SessionScript.matches(line: "made 2026 by x", "made [..] by x"))
    #expect(SessionScript.matches(line: "abc", "a[..]b[..]c"))
    #expect(!SessionScript.matches(line: "made 2026 by y", "made [..] by x"))
    #expect(!SessionScript.matches(line: "ab", "ab[..]b"))
  }
}
