#if os(Linux)
  import Foundation
  import Glibc
  import Testing
  import TestSupport

  @testable import keyhaul

  @Suite("Core dumps")
  struct CoreDumpTests {
    /// Whether the system writes core dumps to the working directory of the program.
    private static let usesWorkingDirectory: Bool = {
      let pattern = try? String(contentsOfFile: "/proc/sys/kernel/core_pattern", encoding: .utf8)
      return pattern.map { !$0.hasPrefix("|") && !$0.contains("/") } ?? false
    }()

    private func coreDumps(in sandbox: DeviceSandbox) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: sandbox.home.path).filter { $0.hasPrefix("core") }
    }

    @Test(
      "The program leaves no core dump, even if the shell allows it", arguments: [SIGSEGV, SIGABRT, SIGQUIT, SIGTRAP])
    func crash(signal: Int32) throws {
      let sandbox = try DeviceSandbox(after: "keyhaul device create d")
      let terminal = try PseudoTerminal()
      var limits = ""
      let outcome = try sandbox.program.process(
        shell: "ulimit -H -c unlimited; ulimit -c unlimited; exec keyhaul device passcode set d"
      ).run(terminal: terminal.path) { process in
        terminal.collect(milliseconds: 10)
        guard terminal.isAtPrompt, limits.isEmpty else { return }
        limits = (try? String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)) ?? "none"
        kill(process, signal)
      }
      #expect(outcome.status == 128 + signal, "\(outcome) \(terminal.transcript)")
      #expect(limits.contains(/Max core file size\ +0\ +0\ /), "\(limits)")
      #expect(try coreDumps(in: sandbox).isEmpty)
    }

    @Test("Another program leaves a core dump under the same conditions")
    func control() throws {
      // Only root can raise the hard limit of the size of core dumps.
      guard Self.usesWorkingDirectory, geteuid() == 0 else { return }
      let sandbox = try DeviceSandbox()
      let outcome = try sandbox.run("(ulimit -H -c unlimited; ulimit -c unlimited; exec sh -c 'kill -SEGV $$'); ls")
      #expect(outcome.output.contains("core"), "\(outcome)")
    }

    @Test("A password command also runs without core dumps")
    func inherited() throws {
      let sandbox = try DeviceSandbox(after: "keyhaul device create d")
      try sandbox.run("keyhaul device passcode set d --new-passcode-command 'ulimit -H -c > limit; echo 1234567'")
      #expect(try sandbox.run("cat limit").output == "0\n")
    }
  }
#endif
