#if os(Linux)
  import Foundation
  import Glibc
  import TestSupport

  /// The built program under a tracer, so that its memory can be looked through at its prompts and at its very end: when
  /// it has called `exit`, or a signal ends it, and the system has not taken its memory back yet.
  struct TracedProgram {
    /// A closure that inspects the process with the given number.
    typealias Look = (_ process: Int32) throws -> Void

    /// Whether this process may trace one that lets nobody look into it: root may, where nothing forbids it.
    static let isPossible: Bool = {
      guard geteuid() == 0, let trace else { return false }
      let seen = try? ChildProcess("/bin/sleep", ["0.05"]).run { process in
        _ = trace(seize, process, 0, exitOption)
      } whenStopped: { process, _ in
        _ = trace(goOn, process, 0, 0)
      }
      return seen?.status == 0
    }()

    let program: BuiltProgram

    /// Seconds that a process had of the processors so far; 0 where it has gone.
    static func processorSeconds(of process: Int32) -> Double {
      guard let line = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return 0 }
      // The first field after the name, which may hold anything, is the third; user and system are the 14th and 15th.
      let fields = line.split(separator: ")").last?.split(separator: " ") ?? []
      guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
      return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Runs the program to its end.
    ///
    /// - Parameters:
    ///   - typed: Lines, each sent when a prompt waits and was looked at.
    ///   - atPrompt: Called at each prompt.
    ///   - whileRunning: Called repeatedly.
    ///   - atEnd: Called once, before the memory goes.
    func run(
      _ arguments: [String], typed: [String] = [], atPrompt: Look = { _ in }, whileRunning: Look = { _ in },
      atEnd: Look
    ) throws -> BuiltProgram.Outcome {
      let terminal = try PseudoTerminal()
      let start = try TemporaryDirectory()
      let process = program.process(arguments, waitingFor: start.path("traced"))
      var lines = typed[...]
      var isTraced = false
      var prompts = 0
      let outcome = try process.run(terminal: terminal.path) { process in
        if !isTraced {
          isTraced = Self.trace?(Self.seize, process, 0, Self.exitOption) == 0
          if isTraced { try start.write([], to: "traced") }
        }
        terminal.collect(milliseconds: 10)
        if terminal.isAtPrompt, prompts == typed.count - lines.count {
          prompts += 1
          try atPrompt(process)
          if let line = lines.popFirst() { terminal.send(line) }
        }
        try whileRunning(process)
      } whenStopped: { process, status in
        let (signal, event) = (status >> 8 & 0xFF, status >> 16)
        if event == Self.exitEvent { try atEnd(process) }
        // A stop that the tracer caused is not a signal of the program.
        _ = Self.trace?(Self.goOn, process, 0, event == 0 ? UInt(signal) : 0)
      }
      terminal.collect(milliseconds: 10)
      return BuiltProgram.Outcome(
        output: String(decoding: outcome.output, as: UTF8.self),
        errors: String(decoding: outcome.errors, as: UTF8.self), status: outcome.status,
        terminal: terminal.transcript)
    }

    // The requests, options and events of `ptrace`, as Linux numbers them.
    private static let goOn: Int32 = 7
    private static let seize: Int32 = 0x4206
    private static let exitOption: UInt = 0x40
    private static let exitEvent: Int32 = 6

    private typealias Trace = @convention(c) (Int32, Int32, UInt, UInt) -> Int
    /// The C library declares it with any number of arguments, which Swift does not call.
    private static let trace: Trace? = dlsym(nil, "ptrace").map { unsafeBitCast($0, to: Trace.self) }
  }
#endif
