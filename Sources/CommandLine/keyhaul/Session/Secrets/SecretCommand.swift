import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Runs a user's command, such as a password manager, and takes what it prints straight into memory that is wiped.
///
/// The command shares our standard input, standard error and terminal, so that it can prompt on its own. It runs in its
/// own process group. When the command ends, or this program is asked to stop, every process in the group is ended. A
/// background group is stopped when it reads the terminal; it then gets the terminal until it ends.
enum SecretCommand {
  static func output(
    of command: String, family: SecretFamily, subject: String, terminal: TerminalDevice?
  ) throws(CommandFailure) -> WipedBuffer {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw failure(family, subject, Errno.last.reason) }
    let (readEnd, writeEnd) = (ends[0], ends[1])
    defer { close(readEnd) }
    _ = fcntl(readEnd, F_SETFD, FD_CLOEXEC)
    _ = fcntl(writeEnd, F_SETFD, FD_CLOEXEC)

    let started = start(command, output: writeEnd)
    close(writeEnd)
    let running: RunningCommand
    switch started {
    case .success(let identifier):
      running = RunningCommand(
        identifier, terminal: terminal,
        withoutTerminal: failure(family, subject, "it was stopped, because it uses a terminal that another program has")
      )
    case .failure(let error): throw failure(family, subject, "/bin/sh: \(error.reason)", of: error)
    }

    let bytes: WipedBuffer
    do {
      bytes = try running.output(from: readEnd)
    } catch {
      running.stop()
      switch error {
      case .system(let reason): throw failure(family, subject, reason.reason, of: reason)
      case .overLimit: throw SecretDraining.overLimit("the command", family: family)
      case .interrupted(let interruption): throw interruption
      }
    }
    let hadTerminal = running.hasTerminal
    let status = running.end()
    try Interruption.check()
    // The parts of a wait status, as POSIX systems lay them out: the signal in the low seven bits, the exit code above.
    let (signal, code) = (status & 0x7F, status >> 8 & 0xFF)
    // Ctrl-C at the command's prompt reaches only the command, but is meant for this program too. A shell reports it as
    // 128 + 2.
    if hadTerminal, signal == SIGINT || (signal == 0 && code == 128 + SIGINT) {
      throw Interruption.failure(SIGINT, state: "nothing was changed")
    }
    guard signal == 0 else { throw failure(family, subject, "it was ended by signal \(signal)") }
    guard code == 0 else { throw failure(family, subject, "it exited with code \(code)") }
    return bytes
  }

  private static func failure(
    _ family: SecretFamily, _ subject: String, _ why: String, of errno: Errno? = nil
  ) -> CommandFailure {
    CommandFailure(
      .failed, "the command for the \(family.noun) of \(subject) failed", why: why, try: "run the command by itself",
      of: errno)
  }

  private static func start(_ command: String, output: Int32) -> Result<pid_t, Errno> {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // We ignore these two; the command expects what every program expects.
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for number in [SIGPIPE, SIGXFSZ] { sigaddset(&defaults, number) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    // 0 creates a new group, numbered like the command's process.
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    var arguments: [UnsafeMutablePointer<CChar>?] =
      ["sh", "-c", command].map { (text: String) in strdup(text) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, "/bin/sh", &actions, &attributes, &arguments, environ)
    return code == 0 ? .success(child) : .failure(Errno(rawValue: code))
  }
}

/// A command in its own process group. The group's number is its first process's number.
private final class RunningCommand {
  private let child: pid_t
  private let terminal: TerminalDevice?
  private let stopFailure: CommandFailure

  /// - Parameters:
  ///   - terminal: The session's terminal. The command gets it if it reads it and this program has it.
  ///   - stopFailure: The error if the command needs a terminal that it cannot get.
  init(_ child: pid_t, terminal: TerminalDevice?, withoutTerminal stopFailure: CommandFailure) {
    self.child = child
    self.terminal = terminal
    self.stopFailure = stopFailure
    Interruption.didStartCommand(in: child)
  }

  var hasTerminal: Bool { terminal?.isLent == true }

  /// Reads the command's output until the command ends, without waiting for child processes that it left behind.
  func output(from descriptor: Int32) throws(SecretDraining.Failure) -> WipedBuffer {
    let buffer = WipedBuffer(limit: SecretLimits.maximumByteCount)
    var isOpen = true
    var pause: UInt32 = 500
    // Bytes may arrive after the command's end. After two waits without any, the output is complete.
    var waitCount = 0
    while waitCount < 2 {
      if let signal = Interruption.pending {
        throw .interrupted(Interruption.failure(signal, state: "nothing was changed"))
      }
      let state = self.state
      let hasEnded = state == .ended
      if hasEnded {
        kill(-child, SIGKILL)
        if !isOpen { return buffer }
      } else if state == .stopped {
        try followStop()
      }
      guard isOpen else {
        usleep(pause)
        pause = min(2 * pause, 100_000)
        continue
      }
      let step: WipedBuffer.ReadStep
      do {
        step = try buffer.readOnce(from: descriptor)
      } catch {
        throw .system(error)
      }
      switch step {
      case .more: waitCount = 0
      case .noDataYet: waitCount = hasEnded ? waitCount + 1 : 0
      case .end: isOpen = false
      case .full: throw .overLimit
      }
    }
    return buffer
  }

  /// Kills the group and returns the exit status of the command, which has already ended.
  func end() -> Int32 {
    kill(-child, SIGKILL)
    // Forgotten before it is collected: then its number may belong to another group.
    Interruption.didEndCommand()
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 {
      guard errno == EINTR else {
        status = 0xFF00
        break
      }
    }
    // The continuation that it causes is not one after Ctrl-Z.
    if terminal?.takeBack(resettingSettings: status != 0) != nil { _ = Interruption.takeResumption() }
    return status
  }

  /// Asks the group to end, and kills it after a short time.
  func stop() {
    kill(-child, SIGTERM)
    kill(-child, SIGCONT)
    for _ in 0..<Self.graceCount where state != .ended { usleep(10_000) }
    _ = end()
  }

  /// The number of times that `stop` checks whether the command has ended, 10 ms apart.
  private static let graceCount = 50

  private enum State {
    case running, stopped, ended
  }

  /// Whether the command runs, was stopped or has ended. A stop is reported once, and an exit status is not collected.
  ///
  /// A single call asks for both. Once the command has ended, a call that asks only for stops fails with ECHILD, which
  /// says nothing about a stop.
  private var state: State {
    var information = siginfo_t()
    guard waitid(P_PID, id_t(child), &information, WEXITED | WSTOPPED | WNOWAIT | WNOHANG) == 0 else {
      return errno == EINTR ? .running : .ended
    }
    guard information.si_signo != 0 else { return .running }
    guard information.si_code == Int32(CLD_STOPPED) else { return .ended }
    return waitid(P_PID, id_t(child), &information, WSTOPPED | WNOHANG) == 0 ? .stopped : .running
  }

  /// Gives the terminal to a command that was stopped because it read the terminal. Otherwise stops this program too,
  /// as Ctrl-Z does, and continues together with the command.
  private func followStop() throws(SecretDraining.Failure) {
    if terminal?.lend(to: child) != true {
      let settings = terminal?.takeBack(resettingSettings: true)
      _ = Interruption.takeResumption()
      kill(0, SIGTSTP)
      usleep(10_000)
      // Without a shell's job control, this does not stop the program, which may then never get the terminal.
      guard Interruption.takeResumption() || terminal?.isForeground == true else { throw .interrupted(stopFailure) }
      if let settings { terminal?.lend(to: child, with: settings) }
    }
    kill(-child, SIGCONT)
  }
}
