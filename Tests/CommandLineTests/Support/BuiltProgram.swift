import Foundation
import TestSupport

@testable import keyhaul

/// The built program, run in its own session without a terminal unless one is given.
struct BuiltProgram {
  struct Outcome: Equatable {
    var output: String
    var errors: String
    var status: Int32
    /// The text on the pseudo-terminal; empty if there was none.
    var terminal = ""
  }

  /// The error of a program that did not end, with the text on its terminal.
  struct TimedOut: Error { let terminal: String }

  /// A temporary folder: the working directory, which contains the device folder.
  let home: URL

  /// The folder of the tested program: the program that `KEYHAUL_TESTED_PROGRAM` names, such as a release build, or else
  /// the program beside the test bundle.
  static var directory: URL {
    if let path = ProcessInfo.processInfo.environment["KEYHAUL_TESTED_PROGRAM"] {
      return URL(filePath: path).deletingLastPathComponent()
    }
    var directory = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    #if canImport(Darwin)
      if let bundle = Bundle.allBundles.first(where: { $0.bundlePath.hasSuffix(".xctest") }) {
        directory = bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return directory
  }

  /// Runs the program with these arguments.
  func run(_ arguments: [String], environment: [String: String] = [:], input: String? = nil) throws -> Outcome {
    try run(command: Self.directory.appending(path: "keyhaul").path, arguments, environment: environment, input: input)
  }

  /// Runs a shell line in which `keyhaul` is the program.
  func shell(
    _ line: String, environment: [String: String] = [:], typed: [String]? = nil,
    beforeAnswering: (_ terminal: String) throws -> Void = { _ in }
  ) throws -> Outcome {
    try run(
      command: "/bin/sh", ["-c", line], environment: environment, typed: typed, beforeAnswering: beforeAnswering)
  }

  /// Runs a command to its end.
  ///
  /// - Parameters:
  ///   - typed: The lines for a pseudo-terminal, each sent when a prompt waits; `nil` if there is no terminal.
  ///   - showsOutputOnTerminal: Whether standard output and error are also the terminal.
  ///   - beforeAnswering: Called while a prompt waits, with the text on the terminal.
  func run(
    command: String, _ arguments: [String], environment: [String: String] = [:], input: String? = nil,
    typed: [String]? = nil, showsOutputOnTerminal: Bool = false,
    beforeAnswering: (_ terminal: String) throws -> Void = { _ in }
  ) throws -> Outcome {
    let process = ChildProcess(command, arguments, environment: self.environment(with: environment), in: home.path)
    guard let typed else { return Outcome(try process.run(input: Data((input ?? "").utf8)), terminal: "") }
    let terminal = try PseudoTerminal()
    var lines = typed[...]
    do {
      let outcome = try process.run(
        input: Data((input ?? "").utf8), terminal: terminal.path, showsOutputOnTerminal: showsOutputOnTerminal
      ) { _ in
        terminal.collect(milliseconds: 20)
        guard terminal.isAtPrompt, let line = lines.popFirst() else { return }
        try beforeAnswering(terminal.transcript)
        terminal.send(line)
      }
      terminal.collect(milliseconds: 20)
      return Outcome(outcome, terminal: terminal.transcript)
    } catch ChildProcess.Failure.timedOut {
      throw TimedOut(terminal: terminal.transcript)
    }
  }

  /// Returns the program as a process to start.
  func process(_ arguments: [String]) -> ChildProcess {
    ChildProcess(Self.directory.appending(path: "keyhaul").path, arguments, environment: environment(), in: home.path)
  }

  /// Returns the program as a process that waits for a file before it starts. Without waiting, a short command could end
  /// before the test observes it.
  func process(_ arguments: [String], waitingFor path: String) -> ChildProcess {
    let line = #"until [ -e "$0" ]; do sleep 0.01; done; exec "$@""#
    let program = Self.directory.appending(path: "keyhaul").path
    return ChildProcess("/bin/sh", ["-c", line, path, program] + arguments, environment: environment(), in: home.path)
  }

  /// Returns a shell line in which `keyhaul` is the program, as a process to start.
  func process(shell line: String) -> ChildProcess {
    ChildProcess("/bin/sh", ["-c", line], environment: environment(), in: home.path)
  }

  private func environment(with changes: [String: String] = [:]) -> [String: String] {
    var environment = [
      "PATH": "\(Self.directory.path):/usr/local/bin:/usr/bin:/bin", "HOME": home.path,
      "KEYHAUL_HOME": home.path + "/devices",
      "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "xterm", "SWIFT_BACKTRACE": "enable=no",
    ]
    for name in ["LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"] {
      if let value = ProcessInfo.processInfo.environment[name] { environment[name] = value }
    }
    return environment.merging(changes) { _, new in new }
  }
}

extension BuiltProgram.Outcome {
  fileprivate init(_ outcome: ChildProcess.Outcome, terminal: String) {
    self.init(
      output: String(decoding: outcome.output, as: UTF8.self),
      errors: String(decoding: outcome.errors, as: UTF8.self), status: outcome.status, terminal: terminal)
  }
}
