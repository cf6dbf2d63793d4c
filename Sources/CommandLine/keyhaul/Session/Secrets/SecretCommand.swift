import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Runs a user's command, such as a password manager, and reads its output into memory that is wiped.
///
/// The command shares this program's standard input, standard error and terminal, so that it can prompt. It runs in its
/// own process group. All processes of the group are ended when the command ends or this program is asked to stop. A
/// background group is stopped when it reads the terminal. Keyhaul then gives it the terminal until the command ends.
enum SecretCommand {
  /// Runs a command and returns its output.
  ///
  /// - Parameters:
  ///   - command: The command, for `/bin/sh -c`.
  ///   - kind: The kind of secret that it prints.
  ///   - subject: The backup or device that the secret belongs to, for messages.
  ///   - terminal: The terminal that the command may use; `nil` if there is none.
  /// - Throws: An error if the command could not run, failed, or printed too much.
  static func output(
    of command: String, kind: SecretKind, subject: String, terminal: TerminalDevice?
  ) throws(CommandError) -> SecureInputBuffer {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw failure(kind, subject, Errno.last.reason) }
    let (readEnd, writeEnd) = (ends[0], ends[1])
    defer { close(readEnd) }
    _ = fcntl(readEnd, F_SETFD, FD_CLOEXEC)
    _ = fcntl(writeEnd, F_SETFD, FD_CLOEXEC)

    let started = start(command, output: writeEnd)
    close(writeEnd)
    let process: pid_t
    switch started {
    case .success(let identifier): process = identifier
    case .failure(let error): throw failure(kind, subject, "/bin/sh: \(error.reason)", of: error)
    }
    let running = RunningCommand(
      process, terminal: terminal,
      terminalError: failure(kind, subject, "it was stopped, because it uses a terminal that another program has"))

    let bytes = try readOutput(of: running, from: readEnd, kind, subject)
    let hadTerminal = running.hasTerminal
    let status = running.end()
    try Interruption.check()
    try checkStatus(status, hadTerminal: hadTerminal, kind, subject)
    return bytes
  }

  private static func readOutput(
    of running: RunningCommand, from descriptor: Int32, _ kind: SecretKind, _ subject: String
  ) throws(CommandError) -> SecureInputBuffer {
    do {
      return try running.output(from: descriptor)
    } catch {
      running.stop()
      switch error {
      case .system(let reason): throw failure(kind, subject, reason.reason, of: reason)
      case .overLimit: throw SecretReader.overLimitError("the command", kind: kind)
      case .interrupted(let interruption): throw interruption
      }
    }
  }

  /// Throws an error if the command failed.
  ///
  /// - Parameter status: The wait status: the signal in the low seven bits, the exit code in the second byte.
  private static func checkStatus(
    _ status: Int32, hadTerminal: Bool, _ kind: SecretKind, _ subject: String
  ) throws(CommandError) {
    let (signal, code) = (status & 0x7F, status >> 8 & 0xFF)
    // Ctrl-C at the command's prompt reaches only the command, but is meant for this program too. A shell reports it as
    // 128 + 2.
    if hadTerminal, signal == SIGINT || (signal == 0 && code == 128 + SIGINT) {
      throw Interruption.failure(SIGINT, state: "nothing was changed")
    }
    guard signal == 0 else { throw failure(kind, subject, "it was ended by signal \(signal)") }
    guard code == 0 else { throw failure(kind, subject, "it exited with code \(code)") }
  }

  private static func failure(
    _ kind: SecretKind, _ subject: String, _ why: String, of errno: Errno? = nil
  ) -> CommandError {
    CommandError(
      .failed, "the command for the \(kind.noun) of \(subject) failed", why: why, try: "run the command by itself",
      of: errno)
  }

  /// Starts a command in a new process group, with its output to a descriptor.
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
    // This program ignores these signals, but the command expects the default actions.
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for number in [SIGPIPE, SIGXFSZ] { sigaddset(&defaults, number) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    // 0 creates a new group with the number of the command's process.
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    var arguments: [UnsafeMutablePointer<CChar>?] =
      ["sh", "-c", command].map { (text: String) in strdup(text) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let code = posix_spawn(&process, "/bin/sh", &actions, &attributes, &arguments, environ)
    return code == 0 ? .success(process) : .failure(Errno(rawValue: code))
  }
}

/// A running command and the processes that it started, which form a process group.
private final class RunningCommand {
  /// The number of the process group, which is also the number of the command's own process.
  private let group: pid_t
  private let terminal: TerminalDevice?
  private let terminalError: CommandError

  /// Starts to track a command.
  ///
  /// - Parameters:
  ///   - process: The command's process, which leads its group.
  ///   - terminal: The session's terminal, which the command gets when it reads it.
  ///   - terminalError: The error to throw if the command needs a terminal that it cannot get.
  init(_ process: pid_t, terminal: TerminalDevice?, terminalError: CommandError) {
    group = process
    self.terminal = terminal
    self.terminalError = terminalError
    Interruption.didStartCommand(in: group)
  }

  var hasTerminal: Bool { terminal?.isLent == true }

  /// Reads the command's output until the command ends, without waiting for child processes that it left running.
  func output(from descriptor: Int32) throws(SecretReader.Failure) -> SecureInputBuffer {
    let buffer = SecureInputBuffer(limit: SecretReader.maximumByteCount)
    var isOpen = true
    /// The time until the next check of the state, in microseconds, once the command has closed its output.
    var pause: UInt32 = 500
    // Bytes may arrive after the command has ended. The output is complete after two waits without any.
    var emptyWaitCount = 0
    while emptyWaitCount < 2 {
      if let signal = Interruption.pending {
        throw .interrupted(Interruption.failure(signal, state: "nothing was changed"))
      }
      let state = self.state
      let hasEnded = state == .ended
      // Processes that the command left running may keep its output open.
      if hasEnded { kill(-group, SIGKILL) }
      if hasEnded, !isOpen { return buffer }
      if state == .stopped { try handleStop() }
      guard isOpen else {
        usleep(pause)
        pause = min(2 * pause, 100_000)
        continue
      }
      switch try SecretReader.readStep(into: buffer, from: descriptor) {
      case .more: emptyWaitCount = 0
      case .noDataYet: emptyWaitCount = hasEnded ? emptyWaitCount + 1 : 0
      case .end: isOpen = false
      case .full: throw .overLimit
      }
    }
    return buffer
  }

  /// Kills the group and returns the exit status of the command, which has already ended.
  func end() -> Int32 {
    kill(-group, SIGKILL)
    // Stops tracking the group first, because its number may be reused once the status is collected.
    Interruption.didEndCommand()
    var status: Int32 = 0
    while waitpid(group, &status, 0) < 0 {
      guard errno == EINTR else {
        status = Self.unknownStatus
        break
      }
    }
    // Taking the terminal back also sends SIGCONT to this program. No Ctrl-Z preceded that signal, so it is ignored.
    if terminal?.takeBack(resettingSettings: status != 0) != nil { _ = Interruption.consumeResumption() }
    return status
  }

  /// Asks the group to end, and kills it after a short time.
  func stop() {
    kill(-group, SIGTERM)
    kill(-group, SIGCONT)
    for _ in 0..<Self.graceCount where state != .ended { usleep(10_000) }
    _ = end()
  }

  /// The wait status to use if the system reports none: exit code 255.
  private static let unknownStatus: Int32 = 0xFF00

  /// The number of times that `stop` checks whether the command has ended, 10 ms apart.
  private static let graceCount = 50

  private enum State {
    case running, stopped, ended
  }

  /// The state of the command. Reports a stop only once, and does not collect an exit status.
  ///
  /// A single call asks for both states, because a call that asks only for stops fails with ECHILD once the command has
  /// ended.
  private var state: State {
    var information = siginfo_t()
    guard waitid(P_PID, id_t(group), &information, WEXITED | WSTOPPED | WNOWAIT | WNOHANG) == 0 else {
      return errno == EINTR ? .running : .ended
    }
    guard information.si_signo != 0 else { return .running }
    guard information.si_code == Int32(CLD_STOPPED) else { return .ended }
    return waitid(P_PID, id_t(group), &information, WSTOPPED | WNOHANG) == 0 ? .stopped : .running
  }

  /// Gives the terminal to a command that was stopped because it read the terminal.
  ///
  /// If this program does not have the terminal, or the command already has it, this program stops too, as with Ctrl-Z.
  /// When this program continues, so does the command.
  private func handleStop() throws(SecretReader.Failure) {
    if terminal?.lend(to: group) != true {
      let groupSettings = terminal?.takeBack(resettingSettings: true)
      _ = Interruption.consumeResumption()
      kill(0, SIGTSTP)
      usleep(10_000)
      // Without job control, this does not stop the program, which may then never get the terminal.
      guard Interruption.consumeResumption() || terminal?.isForeground == true else {
        throw .interrupted(terminalError)
      }
      if let groupSettings { terminal?.lend(to: group, with: groupSettings) }
    }
    kill(-group, SIGCONT)
  }
}
