import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Unblocks SIGINT and SIGTERM on this thread, as on the program's main thread. A test runs on a thread of a pool, which
/// blocks signals.
private func unblockSignals() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGINT)
  sigaddset(&signals, SIGTERM)
  pthread_sigmask(SIG_UNBLOCK, &signals, nil)
}

/// Each test runs in its own process, because a signal affects the entire process. If a test fails, the exit code of that
/// process tells which step failed.
@Suite("Ctrl-C and other signals")
struct InterruptionTests {
  @Test("The first SIGINT asks the work to stop, and the second SIGINT ends the program immediately")
  func secondInterruptEndsProgram() async {
    await #expect(processExitsWith: .exitCode(130)) {
      unblockSignals()
      Interruption.install()
      raise(SIGINT)
      guard let failure = thrownError({ try Interruption.check("nothing was changed") }), failure.status.code == 130
      else {
        exit(1)
      }
      raise(SIGINT)
      exit(2)
    }
  }

  @Test("If the parent process ignores SIGQUIT, this signal does not overwrite secrets")
  func ignoredQuitKeepsSecrets() async {
    await #expect(processExitsWith: .exitCode(0)) {
      signal(SIGQUIT, SIG_IGN)
      Interruption.install()
      let secret = Secret(utf8: "correct horse")
      raise(SIGQUIT)
      exit(secret.matches(Secret(utf8: "correct horse")) ? 0 : 1)
    }
  }

  @Test("The first SIGTERM asks the work to stop, and the second SIGTERM ends the program immediately")
  func secondTerminationEndsProgram() async {
    await #expect(processExitsWith: .exitCode(143)) {
      unblockSignals()
      Interruption.install()
      raise(SIGTERM)
      guard Interruption.pending == SIGTERM else { exit(1) }
      raise(SIGTERM)
      exit(2)
    }
  }

  @Test("An interrupted change of items exits with the signal's code and reports that no item was changed")
  func interruptedItemChange() async {
    await #expect(processExitsWith: .exitCode(0)) {
      unblockSignals()
      Interruption.install()
      let stopped = KeyhaulError(.cancelled, "it was stopped")
      // Before the signal, the same error is an ordinary failure.
      guard CommandError(stopped, device: "phone").status == .failed else { exit(1) }
      raise(SIGINT)
      let failure = CommandError(stopped, device: "phone")
      exit(failure.status.code == 130 && failure.why == "no item was changed" ? 0 : 2)
    }
  }

  @Test("A signal that the parent process ignores has no effect")
  func ignoredInterrupt() async {
    await #expect(processExitsWith: .exitCode(0)) {
      signal(SIGINT, SIG_IGN)
      unblockSignals()
      Interruption.install()
      raise(SIGINT)
      exit(Interruption.pending == nil ? 0 : 1)
    }
  }

  @Test("Ctrl-C at a prompt ends the prompt with an error and restores the echo")
  func interruptAtPrompt() async {
    await #expect(processExitsWith: .exitCode(0)) {
      unblockSignals()
      Interruption.install()
      guard let terminal = try? PseudoTerminal(), let test = try? TestSession(terminalPath: terminal.path) else {
        exit(1)
      }
      // Only the new thread uses the terminal until the prompt has ended.
      nonisolated(unsafe) let watched = terminal
      Thread {
        while !watched.isAtPrompt || watched.echoes { watched.collect(milliseconds: 10) }
        kill(getpid(), SIGINT)
      }.start()
      let failure = thrownError {
        _ = try test.session.password(try PasswordFlags.parse([]), of: "x.backup")
      }
      guard failure?.status.code == 130, failure?.message == "stopped by Ctrl-C" else { exit(2) }
      exit(terminal.echoes ? 0 : 3)
    }
  }

  @Test("After Ctrl-Z, the prompt asks again and still hides what is typed")
  func resumedPrompt() async {
    await #expect(processExitsWith: .exitCode(0)) {
      unblockSignals()
      Interruption.install()
      guard let terminal = try? PseudoTerminal(), let test = try? TestSession(terminalPath: terminal.path) else {
        exit(1)
      }
      // Only the new thread uses the terminal until the prompt has ended.
      nonisolated(unsafe) let watched = terminal
      Thread {
        while !watched.isAtPrompt || watched.echoes { watched.collect(milliseconds: 10) }
        // The shell takes the terminal back with its own settings, and continues the program later.
        let descriptor = open(watched.path, O_RDWR | O_NOCTTY)
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { exit(2) }
        settings.c_lflag |= tcflag_t(ECHO)
        guard tcsetattr(descriptor, TCSANOW, &settings) == 0 else { exit(3) }
        kill(getpid(), SIGCONT)
        while watched.echoes || watched.transcript.ranges(of: "Password of x.backup: ").count < 2 {
          watched.collect(milliseconds: 10)
        }
        watched.send("hunter2")
      }.start()
      let bytes = try? test.session.password(try PasswordFlags.parse([]), of: "x.backup").withBytes { Array($0) }
      terminal.collect(milliseconds: 50)
      guard bytes == Array("hunter2".utf8), !terminal.transcript.contains("hunter2") else { exit(4) }
      exit(terminal.echoes ? 0 : 5)
    }
  }

  @Test("The second Ctrl-C at a prompt ends the program immediately and restores the echo")
  func secondInterruptAtPrompt() async throws {
    let terminal = try PseudoTerminal()
    let path = terminal.path
    // The test's process gets a copy of the path. This requires a capture with a type.
    await #expect(processExitsWith: .exitCode(130)) { [path = path as String] in
      unblockSignals()
      Interruption.install()
      raise(SIGINT)
      let descriptor = open(path, O_RDWR | O_NOCTTY)
      var settings = termios()
      guard tcgetattr(descriptor, &settings) == 0 else { exit(2) }
      // From here on, the handler restores these settings.
      Interruption.willChangeTerminal(descriptor, from: settings)
      settings.c_lflag &= ~tcflag_t(ECHO)
      guard tcsetattr(descriptor, TCSANOW, &settings) == 0 else { exit(3) }
      raise(SIGINT)
      exit(4)
    }
    #expect(terminal.echoes)
  }

  @Test("Ctrl-C ends the wait for a password command")
  func interruptDuringPasswordCommand() async {
    await #expect(processExitsWith: .exitCode(0)) {
      unblockSignals()
      Interruption.install()
      guard let test = try? TestSession() else { exit(1) }
      let marker = test.directory.appending(path: "started").path
      Thread {
        while !FileManager.default.fileExists(atPath: marker) { usleep(10_000) }
        kill(getpid(), SIGINT)
      }.start()
      let failure = thrownError {
        _ = try test.session.password(
          try PasswordFlags.parse(["--password-command", "touch '\(marker)'; exec sleep 600"]), of: "x.backup")
      }
      exit(failure?.status.code == 130 ? 0 : 2)
    }
  }
}
