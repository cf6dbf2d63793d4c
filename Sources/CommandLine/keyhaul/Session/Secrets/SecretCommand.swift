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
/// The command has our standard input, standard error and terminal, so that it can ask on its own.
enum SecretCommand {
  static func output(
    of command: String, family: SecretFamily, subject: String
  ) throws(CommandFailure) -> WipedBuffer {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw failure(family, subject, Errno.last.reason) }
    let (readEnd, writeEnd) = (ends[0], ends[1])
    defer { close(readEnd) }
    _ = fcntl(readEnd, F_SETFD, FD_CLOEXEC)
    _ = fcntl(writeEnd, F_SETFD, FD_CLOEXEC)

    let started = start(command, output: writeEnd)
    close(writeEnd)
    let child: pid_t
    switch started {
    case .success(let identifier): child = identifier
    case .failure(let error): throw failure(family, subject, "/bin/sh: \(error.reason)")
    }

    let bytes: WipedBuffer
    do {
      bytes = try SecretDraining.drain(readEnd)
    } catch {
      kill(child, SIGTERM)
      _ = wait(for: child, isUnwanted: true)
      switch error {
      case .system(let reason): throw failure(family, subject, reason.reason)
      case .overLimit: throw SecretDraining.overLimit("the command", family: family)
      case .interrupted(let interruption): throw interruption
      }
    }
    let status = wait(for: child)
    try Interruption.check()
    // The parts of a wait status, as POSIX systems lay them out: the signal in the low seven bits, the exit code above.
    guard status & 0x7F == 0 else { throw failure(family, subject, "it was ended by signal \(status & 0x7F)") }
    guard status >> 8 & 0xFF == 0 else {
      throw failure(family, subject, "it exited with code \(status >> 8 & 0xFF)")
    }
    return bytes
  }

  private static func failure(_ family: SecretFamily, _ subject: String, _ why: String) -> CommandFailure {
    CommandFailure(
      .failed, "the command for the \(family.noun) of \(subject) failed", why: why, try: "run the command by itself")
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
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))

    var arguments: [UnsafeMutablePointer<CChar>?] =
      ["sh", "-c", command].map { (text: String) in strdup(text) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, "/bin/sh", &actions, &attributes, &arguments, environ)
    return code == 0 ? .success(child) : .failure(Errno(rawValue: code))
  }

  /// How long a command may take to end that was asked to.
  private static let patience = Duration.seconds(1)

  /// Waits for the end of the command.
  ///
  /// If the program is asked to stop, so is the command, and is killed if it does not end within a second. It never sleeps
  /// in the wait itself: a signal that came just before that would be lost.
  ///
  /// - Parameter isUnwanted: Whether the command was asked to end already.
  private static func wait(for child: pid_t, isUnwanted: Bool = false) -> Int32 {
    var status: Int32 = 0
    var asked = isUnwanted ? ContinuousClock.now : nil
    var isKilled = false
    var pause: useconds_t = 100
    while true {
      let ended = waitpid(child, &status, WNOHANG)
      if ended == child { return status }
      if ended < 0, errno != EINTR { return 0xFF00 }
      if let moment = asked {
        if !isKilled, moment.duration(to: .now) >= patience {
          kill(child, SIGKILL)
          isKilled = true
        }
      } else if Interruption.pending != nil {
        kill(child, SIGTERM)
        asked = .now
      }
      usleep(pause)
      pause = min(pause * 2, 20_000)
    }
  }
}
