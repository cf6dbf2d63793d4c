import Basics
package import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A program that a test starts in a separate session, with its streams in files.
package struct ChildProcess {
  package struct Outcome: Equatable, Sendable {
    package var output: Data
    package var errors: Data
    /// The exit status of the program; 128 plus the signal's number if a signal ended it.
    package var status: Int32
  }

  package enum Failure: Error {
    case notStarted(String)
    case timedOut
  }

  /// The limit for a program that hangs. It is generous, because other tests run at the same time.
  private static let timeoutSeconds: TimeInterval = 300

  /// `POSIX_SPAWN_SETSID`, which Glibc's module leaves out.
  #if canImport(Darwin)
    private static let startsSession = Int16(POSIX_SPAWN_SETSID)
  #else
    private static let startsSession = Int16(0x80)
  #endif

  /// The path of the program, or a name to search for in `PATH`.
  private let command: String
  private let arguments: [String]
  private let environment: [String: String]
  private let directory: String

  /// Creates a program to run.
  ///
  /// - Parameters:
  ///   - command: The path of the program, or a name to search for in `PATH`.
  ///   - arguments: The arguments of the program.
  ///   - environment: The complete environment; `nil` to inherit the environment of the tests.
  ///   - directory: The working directory.
  package init(
    _ command: String, _ arguments: [String], environment: [String: String]? = nil, in directory: String = "/"
  ) {
    self.command = command
    self.arguments = arguments
    self.environment = environment ?? ProcessInfo.processInfo.environment
    self.directory = directory
  }

  /// Runs the program to its end.
  ///
  /// - Parameters:
  ///   - input: The content of standard input.
  ///   - terminal: The path of the program's terminal; `nil` if the program has none.
  ///   - showsOutputOnTerminal: Whether the program's three standard streams are connected to the terminal.
  ///   - whileRunning: Called repeatedly with the process identifier until the program ends. Each call should take a few
  ///     milliseconds.
  ///   - whenStopped: Called with the process identifier and wait status if `whileRunning` traces the program and the
  ///     program is stopped.
  package func run(
    input: Data = Data(), terminal: String? = nil, showsOutputOnTerminal: Bool = false,
    whileRunning: (_ process: Int32) throws -> Void = { _ in usleep(2_000) },
    whenStopped: (_ process: Int32, _ status: Int32) throws -> Void = { _, _ in }
  ) throws -> Outcome {
    let streams = try TemporaryDirectory()
    try input.write(to: streams.url("in"))
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let terminalDescriptor: Int32 = 3
    if let terminal {
      // The first terminal that a session leader opens becomes the session's controlling terminal.
      posix_spawn_file_actions_addopen(&actions, terminalDescriptor, terminal, O_RDWR, 0)
    }
    if showsOutputOnTerminal, terminal != nil {
      for descriptor in Int32(0)...2 { posix_spawn_file_actions_adddup2(&actions, terminalDescriptor, descriptor) }
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, streams.path("in"), O_RDONLY, 0)
      posix_spawn_file_actions_addopen(&actions, 1, streams.path("out"), O_WRONLY | O_CREAT, 0o600)
      posix_spawn_file_actions_addopen(&actions, 2, streams.path("err"), O_WRONLY | O_CREAT, 0o600)
    }
    if terminal != nil { posix_spawn_file_actions_addclose(&actions, terminalDescriptor) }
    let status = try wait(for: try start(&actions), whileRunning, whenStopped)
    return Outcome(
      output: (try? Data(contentsOf: streams.url("out"))) ?? Data(),
      errors: (try? Data(contentsOf: streams.url("err"))) ?? Data(), status: status)
  }

  #if canImport(Darwin)
    private typealias FileActions = posix_spawn_file_actions_t?
  #else
    private typealias FileActions = posix_spawn_file_actions_t
  #endif

  private func start(_ actions: inout FileActions) throws -> pid_t {
    #if canImport(Darwin)
      var attributes: posix_spawnattr_t?
    #else
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Test threads block signals, but a program starts without blocked signals if a shell starts it.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGINT)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(
      &attributes, Self.startsSession | Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

    // Not every system can change the directory while it starts a program.
    let shell = ["/bin/sh", "-c", #"cd "$0" && exec "$@""#, directory, command]
    var argumentPointers = (shell + arguments).map { (text: String) in strdup(text) } + [nil]
    var environmentPointers = environment.map { (name, value) in strdup("\(name)=\(value)") } + [nil]
    defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, "/bin/sh", &actions, &attributes, &argumentPointers, &environmentPointers)
    guard code == 0 else { throw Failure.notStarted(String(cString: strerror(code))) }
    return child
  }

  private func wait(
    for child: pid_t, _ whileRunning: (_ process: Int32) throws -> Void,
    _ whenStopped: (_ process: Int32, _ status: Int32) throws -> Void
  ) throws -> Int32 {
    let deadline = Date(timeIntervalSinceNow: Self.timeoutSeconds)
    var status: Int32 = 0
    while true {
      let changed = waitpid(child, &status, WNOHANG)
      // The low byte of a stopped program's wait status is 0x7F.
      let isStopped = changed == child && status & 0xFF == 0x7F
      guard changed == 0 || isStopped else { break }
      do {
        if isStopped { try whenStopped(child, status) } else { try whileRunning(child) }
        if Date() > deadline { throw Failure.timedOut }
      } catch {
        kill(child, SIGKILL)
        waitpid(child, &status, 0)
        throw error
      }
    }
    // The low seven bits are the number of the signal that ended the program, and the next byte is the exit status.
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }
}
