import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The program as it was built beside the tests, run in a session of its own: without a terminal unless one is given.
struct BuiltProgram {
  struct Outcome: Equatable {
    var output: String
    var errors: String
    var status: Int32
    /// What was shown on the pseudo-terminal, if there was one.
    var terminal = ""
  }

  enum Failure: Error {
    case notStarted(String)
    case timedOut(terminal: String)
  }

  /// For a program that hangs, and no measure of one that works: other tests run beside it.
  static let patience: TimeInterval = 300

  /// `POSIX_SPAWN_SETSID`, which Glibc's module leaves out.
  #if canImport(Darwin)
    private static let startsSession = Int16(POSIX_SPAWN_SETSID)
  #else
    private static let startsSession = Int16(0x80)
  #endif

  /// An empty folder: the working folder, and the place of virtual devices.
  let home: URL

  /// The folder that the test bundle and the program were built into.
  static var folder: URL {
    var folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    #if canImport(Darwin)
      if let bundle = Bundle.allBundles.first(where: { $0.bundlePath.hasSuffix(".xctest") }) {
        folder = bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return folder
  }

  /// Runs the program with these arguments.
  func run(_ arguments: [String], environment: [String: String] = [:], input: String? = nil) throws -> Outcome {
    try run(command: Self.folder.appending(path: "keyhaul").path, arguments, environment: environment, input: input)
  }

  /// Runs a line of shell, in which `keyhaul` is the program.
  func shell(_ line: String, environment: [String: String] = [:], typed: [String]? = nil) throws -> Outcome {
    try run(command: "/bin/sh", ["-c", line], environment: environment, typed: typed)
  }

  /// - Parameters:
  ///   - typed: Lines for a pseudo-terminal, each sent when a prompt waits. `nil`: there is no terminal at all.
  ///   - showsOutputOnTerminal: Whether standard output and error are the terminal too.
  func run(
    command: String, _ arguments: [String], environment: [String: String] = [:], input: String? = nil,
    typed: [String]? = nil, showsOutputOnTerminal: Bool = false
  ) throws -> Outcome {
    let scratch = home.deletingLastPathComponent().appending(path: "streams-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: scratch) }
    let (output, errors, standardInput) = (
      scratch.appending(path: "out"), scratch.appending(path: "err"), scratch.appending(path: "in")
    )
    try Data((input ?? "").utf8).write(to: standardInput)
    let terminal = try typed.map { _ in try PseudoTerminal() }

    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
      var attributes: posix_spawnattr_t?
    #else
      var actions = posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let terminal {
      // The first terminal that the leader of a session opens becomes the session's own.
      posix_spawn_file_actions_addopen(&actions, 3, terminal.path, O_RDWR, 0)
    }
    if showsOutputOnTerminal, terminal != nil {
      for descriptor in Int32(0)...2 { posix_spawn_file_actions_adddup2(&actions, 3, descriptor) }
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, standardInput.path, O_RDONLY, 0)
      posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY | O_CREAT, 0o600)
      posix_spawn_file_actions_addopen(&actions, 2, errors.path, O_WRONLY | O_CREAT, 0o600)
    }
    if terminal != nil { posix_spawn_file_actions_addclose(&actions, 3) }
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The threads that tests run on have signals blocked; a program from a shell has not.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGINT)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(
      &attributes, Self.startsSession | Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

    // Changing the folder is not a thing that every system can do while it starts a program.
    let shell = ["/bin/sh", "-c", #"cd "$0" && exec "$@""#, home.path, command]
    var argumentPointers = (shell + arguments).map { (text: String) in strdup(text) } + [nil]
    var environmentPointers = full(environment).map { (name, value) in strdup("\(name)=\(value)") } + [nil]
    defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, "/bin/sh", &actions, &attributes, &argumentPointers, &environmentPointers)
    guard code == 0 else { throw Failure.notStarted(String(cString: strerror(code))) }

    let status = try wait(for: child, terminal: terminal, typed: typed ?? [])
    func text(_ url: URL) -> String { String(decoding: (try? Data(contentsOf: url)) ?? Data(), as: UTF8.self) }
    return Outcome(output: text(output), errors: text(errors), status: status, terminal: terminal?.transcript ?? "")
  }

  private func full(_ changes: [String: String]) -> [String: String] {
    var environment = [
      "PATH": "\(Self.folder.path):/usr/local/bin:/usr/bin:/bin", "HOME": home.path,
      "KEYHAUL_HOME": home.path + "/devices",
      "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "xterm", "SWIFT_BACKTRACE": "enable=no",
    ]
    for name in ["LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"] {
      if let value = ProcessInfo.processInfo.environment[name] { environment[name] = value }
    }
    return environment.merging(changes) { _, new in new }
  }

  private func wait(for child: pid_t, terminal: PseudoTerminal?, typed: [String]) throws -> Int32 {
    let deadline = Date(timeIntervalSinceNow: Self.patience)
    var lines = typed[...]
    var status: Int32 = 0
    while waitpid(child, &status, WNOHANG) == 0 {
      if let terminal {
        terminal.collect(milliseconds: 20)
        if terminal.isAtPrompt, let line = lines.popFirst() { terminal.send(line) }
      } else {
        usleep(2_000)
      }
      if Date() > deadline {
        kill(child, SIGKILL)
        waitpid(child, &status, 0)
        throw Failure.timedOut(terminal: terminal?.transcript ?? "")
      }
    }
    terminal?.collect(milliseconds: 20)
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }
}
