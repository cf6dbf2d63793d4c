#if os(Linux)
  import Foundation
  import Glibc
  import Testing
  import TestSupport

  @testable import keyhaul

  @Suite("A program that crashes while it holds a secret")
  struct CoreDumpTests {
    /// Whether the system writes a core dump where the program stands.
    private static let isWrittenHere: Bool = {
      let pattern = try? String(contentsOfFile: "/proc/sys/kernel/core_pattern", encoding: .utf8)
      return pattern.map { !$0.hasPrefix("|") && !$0.contains("/") } ?? false
    }()

    private func cores(in world: DeviceWorld) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: world.home.path).filter { $0.hasPrefix("core") }
    }

    @Test("leaves no core dump, whatever the shell allows", arguments: [SIGSEGV, SIGABRT, SIGQUIT, SIGTRAP])
    func crash(signal: Int32) throws {
      let world = try DeviceWorld(after: "keyhaul device create d")
      let terminal = try PseudoTerminal()
      var limits = ""
      let outcome = try world.program.process(
        shell: "ulimit -H -c unlimited; ulimit -c unlimited; exec keyhaul device passcode set d"
      ).run(terminal: terminal.path) { process in
        terminal.collect(milliseconds: 10)
        guard terminal.isAtPrompt, limits.isEmpty else { return }
        limits = (try? String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)) ?? "none"
        kill(process, signal)
      }
      #expect(outcome.status == 128 + signal, "\(outcome) \(terminal.transcript)")
      #expect(limits.contains(/Max core file size\ +0\ +0\ /), "\(limits)")
      #expect(try cores(in: world).isEmpty)
    }

    @Test("where another program leaves one")
    func control() throws {
      guard Self.isWrittenHere, geteuid() == 0 else { return }
      let world = try DeviceWorld()
      let outcome = try world.run("(ulimit -H -c unlimited; ulimit -c unlimited; exec sh -c 'kill -SEGV $$'); ls")
      #expect(outcome.output.contains("core"), "\(outcome)")
    }

    @Test("and the command that a password comes from starts without them as well")
    func inherited() throws {
      let world = try DeviceWorld(after: "keyhaul device create d")
      try world.run("keyhaul device passcode set d --new-passcode-command 'ulimit -H -c > limit; echo 1234567'")
      #expect(try world.run("cat limit").output == "0\n")
    }
  }
#endif
