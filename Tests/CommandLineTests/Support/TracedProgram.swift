#if os(Linux)
  import Foundation
  import Glibc
  import TestSupport

  /// The built program under `ptrace`. A test can search the program's memory at prompts, and at its end: after `exit` or
  /// a fatal signal, but before the system frees the memory.
  struct TracedProgram {
    /// A closure that inspects the process with the given process ID.
    typealias Inspection = (_ process: Int32) throws -> Void

    /// Whether this process can trace a program that prevents inspection. Usually, only root can.
    static let isPossible: Bool = {
      guard geteuid() == 0, let trace else { return false }
      let traced = try? ChildProcess("/bin/sleep", ["0.05"]).run { process in
        _ = trace(seizeRequest, process, 0, exitOption)
      } whenStopped: { process, _ in
        _ = trace(continueRequest, process, 0, 0)
      }
      return traced?.status == 0
    }()

    let program: BuiltProgram

    /// Returns the processor time that a process has used, in seconds, or 0 if it has ended.
    static func processorSeconds(of process: Int32) -> Double {
      guard let line = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return 0 }
      // The line is "PID (NAME) STATE …", and the name may contain any characters. The state is field 3; user and system
      // time are fields 14 and 15, in clock ticks.
      let fieldsFromState = line.split(separator: ")").last?.split(separator: " ") ?? []
      guard fieldsFromState.count > 12, let user = Double(fieldsFromState[14 - 3]),
        let system = Double(fieldsFromState[15 - 3])
      else { return 0 }
      return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Runs the program to its end.
    ///
    /// - Parameters:
    ///   - typed: The lines to type, each sent at a prompt, after `atPrompt`.
    ///   - atPrompt: Called at each prompt.
    ///   - whileRunning: Called repeatedly.
    ///   - atEnd: Called once, before the system frees the memory.
    func run(
      _ arguments: [String], typed: [String] = [], atPrompt: Inspection = { _ in }, whileRunning: Inspection = { _ in },
      atEnd: Inspection
    ) throws -> BuiltProgram.Outcome {
      let terminal = try PseudoTerminal()
      let startDirectory = try TemporaryDirectory()
      let process = program.process(arguments, waitingFor: startDirectory.path("traced"))
      var unsentLines = typed[...]
      var isTraced = false
      var promptCount = 0
      let outcome = try process.run(terminal: terminal.path) { process in
        if !isTraced {
          isTraced = Self.trace?(Self.seizeRequest, process, 0, Self.exitOption) == 0
          if isTraced { try startDirectory.write([], to: "traced") }
        }
        terminal.collect(milliseconds: 10)
        let sentCount = typed.count - unsentLines.count
        if terminal.isAtPrompt, promptCount == sentCount {
          promptCount += 1
          try atPrompt(process)
          if let line = unsentLines.popFirst() { terminal.send(line) }
        }
        try whileRunning(process)
      } whenStopped: { process, status in
        // The status of a stopped process contains the signal in bits 8 to 15, and an event of `ptrace` above them.
        let (signal, event) = (status >> 8 & 0xFF, status >> 16)
        if event == Self.exitEvent { try atEnd(process) }
        // A stop that the tracer caused is not a signal of the program.
        _ = Self.trace?(Self.continueRequest, process, 0, event == 0 ? UInt(signal) : 0)
      }
      terminal.collect(milliseconds: 10)
      return BuiltProgram.Outcome(
        output: String(decoding: outcome.output, as: UTF8.self),
        errors: String(decoding: outcome.errors, as: UTF8.self), status: outcome.status,
        terminal: terminal.transcript)
    }

    // The requests, options and events of `ptrace`, as Linux numbers them.
    private static let continueRequest: Int32 = 7
    private static let seizeRequest: Int32 = 0x4206
    private static let exitOption: UInt = 0x40
    private static let exitEvent: Int32 = 6

    private typealias Trace = @convention(c) (Int32, Int32, UInt, UInt) -> Int
    /// The C library declares `ptrace` as variadic, so Swift cannot call it directly.
    private static let trace: Trace? = dlsym(nil, "ptrace").map { unsafeBitCast($0, to: Trace.self) }
  }
#endif
