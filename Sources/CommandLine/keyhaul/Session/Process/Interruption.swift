import KeyhaulKit
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The handling of signals such as Ctrl-C: the first one asks the command to stop and roll back, the second one ends
/// the program immediately.
///
/// Both are safe, because every write is a rename or a transaction. Long work calls `check()` between its steps. System
/// calls that wait return with `EINTR`. A signal that arrives just before such a call does not interrupt it.
/// Therefore, after the first signal, an alarm interrupts waiting calls every second until the program ends.
enum Interruption {
  /// The number of the first signal; 0 if none has arrived.
  private static let received = Atomic<Int32>(0)
  /// Whether the first signal ends the program immediately.
  private static let exitsImmediately = Atomic<Bool>(false)
  /// Whether the first signal never ends the program immediately, because the caller must clean up.
  private static let isDeferred = Atomic<Bool>(false)
  /// Whether the program was continued after it was stopped with Ctrl-Z.
  private static let wasResumed = Atomic<Bool>(false)
  /// The process group of a user's command that is running for this program; 0 if none is running.
  private static let commandGroup = Atomic<Int32>(0)
  private static let isExiting = Atomic<Bool>(false)
  /// The terminal's settings from before a prompt changed them or a command got the terminal. The handler may read them
  /// at any time.
  private static let savedTerminal = SavedTerminal()

  /// Installs the signal handlers. SIGINT, SIGTERM and SIGHUP stay ignored if the parent process ignores them, as with
  /// `nohup` and background jobs. SIGPIPE and SIGXFSZ become errors of the write. SIGCHLD gets its default, because the
  /// system discards the exit codes of child processes if a parent process ignored it.
  static func install() {
    initializeStaticProperties()
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    signal(SIGCHLD, SIG_DFL)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      var current = sigaction()
      guard sigaction(number, nil, &current) == 0, !isIgnored(current) else { continue }
      setHandler(of: number) { number in Interruption.handle(number) }
    }
    setHandler(of: SIGALRM) { _ in Interruption.handleAlarm() }
    setHandler(of: SIGCONT) { _ in Interruption.wasResumed.store(true, ordering: .releasing) }
    for number in endingSignals {
      // An ignored signal does not end the program, so its handler must not wipe the secrets.
      guard sigaction(number, nil, previousActions + Int(number)) == 0,
        !isIgnored(previousActions[Int(number)])
      else { continue }
      // Uses the alternate stack of Swift's own handler, if there is one.
      setHandler(of: number, flags: Int32(SA_ONSTACK)) { number in Interruption.crash(number) }
    }
  }

  /// Initializes every static property that a handler uses. Swift would otherwise do so at the first use, which is not
  /// allowed in a signal handler.
  private static func initializeStaticProperties() {
    _ = received.load(ordering: .relaxed)
    _ = exitsImmediately.load(ordering: .relaxed)
    _ = isDeferred.load(ordering: .relaxed)
    _ = wasResumed.load(ordering: .relaxed)
    _ = commandGroup.load(ordering: .relaxed)
    _ = isExiting.load(ordering: .relaxed)
    _ = savedTerminal
    _ = previousActions
    _ = outOfMemory
    ProcessMemory.wipeSecrets()
  }

  /// Returns whether the program was stopped with Ctrl-Z and continued since the last call. The shell had the terminal
  /// in between and may have changed its settings.
  static func consumeResumption() -> Bool { wasResumed.exchange(false, ordering: .acquiringAndReleasing) }

  /// The signal that asked the program to stop; `nil` if there was none.
  static var pending: Int32? {
    let number = received.load(ordering: .acquiring)
    return number == 0 ? nil : number
  }

  /// Throws an error if the program was asked to stop.
  ///
  /// - Parameter state: The state of the work, as a clause for the message: "nothing was changed".
  static func check(_ state: String = "nothing was changed") throws(CommandError) {
    if let number = pending { throw failure(number, state: state) }
  }

  static func failure(_ number: Int32, state: String) -> CommandError {
    CommandError(.signal(number), "stopped by \(number == SIGINT ? "Ctrl-C" : "signal \(number)")", why: state)
  }

  /// Runs work that changes nothing: it only computes, or waits for another process's bytes. During this time, the
  /// first signal ends the program immediately.
  static func exitingImmediatelyOnSignal<Value: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    if isDeferred.load(ordering: .acquiring) { return try body() }
    let previous = exitsImmediately.exchange(true, ordering: .acquiringAndReleasing)
    defer { exitsImmediately.store(previous, ordering: .releasing) }
    return try body()
  }

  /// Runs work whose caller has to clean up afterwards. During this time, the first signal never ends the program
  /// immediately, not even during nested work that would allow it.
  static func deferringSignals<Value: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let previous = isDeferred.exchange(true, ordering: .acquiringAndReleasing)
    defer { isDeferred.store(previous, ordering: .releasing) }
    return try body()
  }

  /// Records the terminal's settings, so that an immediate exit restores them.
  static func willChangeTerminal(_ descriptor: Int32, from settings: termios) {
    savedTerminal.save(settings, of: descriptor)
  }

  /// Records the settings of a terminal before another process group gets it, so that an immediate exit takes it back.
  static func willLendTerminal(_ descriptor: Int32, from settings: termios) {
    savedTerminal.save(settings, of: descriptor, ownedBy: getpgrp())
  }

  static func didRestoreTerminal() { savedTerminal.forget() }

  /// Records a user's command that runs in its own process group, so that an immediate exit ends it.
  static func didStartCommand(in group: pid_t) { commandGroup.store(group, ordering: .releasing) }

  static func didEndCommand() { commandGroup.store(0, ordering: .releasing) }

  /// Kills the user's command. Calls only functions that POSIX allows in a signal handler.
  private static func endCommand() {
    let group = commandGroup.load(ordering: .acquiring)
    if group > 0 { kill(-group, SIGKILL) }
  }

  private static func handle(_ number: Int32) {
    // Only calls that POSIX allows in a signal handler.
    let isFirst = received.compareExchange(expected: 0, desired: number, ordering: .acquiringAndReleasing).exchanged
    if isFirst, !exitsImmediately.load(ordering: .acquiring) {
      alarm(1)
      return
    }
    exitNow(number)
  }

  /// Sets the next alarm. The signal itself has already interrupted a waiting call.
  private static func handleAlarm() {
    let number = received.load(ordering: .acquiring)
    guard number != 0 else { return }
    if exitsImmediately.load(ordering: .acquiring) { exitNow(number) }
    alarm(1)
  }

  private static func exitNow(_ number: Int32) {
    endCommand()
    isExiting.store(true, ordering: .releasing)
    savedTerminal.restore()
    ProcessMemory.wipeSecrets()
    _exit(128 &+ number)
  }

  /// The signals that end the program immediately: Ctrl-\\, `abort`, and crashes.
  private static let endingSignals = [SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP]

  /// The previous actions of the signals, by signal number (0 to 64). Swift's action may print where the program crashed.
  private nonisolated(unsafe) static let previousActions = {
    let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)
    actions.initialize(repeating: sigaction(), count: 65)
    return actions
  }()

  private static let outOfMemory: StaticString = """
    error: keyhaul ran out of memory
      why: the system refused to give more, and the program cannot go on without it
      try: end other programs, or raise the limit of memory (ulimit -v, or the container's)

    """

  /// Wipes all secrets. If the system has no memory left, prints that as the reason; otherwise the signal has its usual
  /// effect.
  private static func crash(_ number: Int32) {
    if isExiting.load(ordering: .acquiring) {
      // Another thread may have used a secret after it was overwritten; the program is about to end anyway.
      sleep(1)
      _exit(128 &+ received.load(ordering: .acquiring))
    }
    endCommand()
    savedTerminal.restore()
    ProcessMemory.wipeSecrets()
    if ProcessMemory.isExhausted {
      _ = write(2, outOfMemory.utf8Start, outOfMemory.utf8CodeUnitCount)
      _exit(CommandExitStatus.failed.code)
    }
    sigaction(number, previousActions + Int(number), nil)
    raise(number)
  }

  private static func isIgnored(_ action: sigaction) -> Bool {
    #if canImport(Darwin)
      let handler = action.__sigaction_u.__sa_handler
    #else
      let handler = action.__sigaction_handler.sa_handler
    #endif
    let ignoringHandler: (@convention(c) (Int32) -> Void)? = SIG_IGN
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(ignoringHandler, to: Int.self)
  }

  /// Sets the handler of a signal.
  ///
  /// - Parameter flags: The flags of `sigaction`, without `SA_RESTART`. A prompt that waits for a line is then
  ///   interrupted.
  private static func setHandler(
    of number: Int32, flags: Int32 = 0, _ handler: @convention(c) (Int32) -> Void
  ) {
    var action = sigaction()
    #if canImport(Darwin)
      action.__sigaction_u.__sa_handler = handler
    #else
      action.__sigaction_handler.sa_handler = handler
    #endif
    action.sa_flags = flags
    sigemptyset(&action.sa_mask)
    sigaction(number, &action, nil)
  }
}

/// A terminal's settings at a fixed address, for the signal handler.
private final class SavedTerminal: Sendable {
  private let descriptor = Atomic<Int32>(-1)
  /// The process group to which the terminal is returned; 0 if no other group has it.
  private let owner = Atomic<Int32>(0)
  private nonisolated(unsafe) let settings = UnsafeMutablePointer<termios>.allocate(capacity: 1)

  init() { settings.initialize(to: termios()) }

  func save(_ newSettings: termios, of terminal: Int32, ownedBy group: pid_t = 0) {
    settings.pointee = newSettings
    owner.store(group, ordering: .releasing)
    descriptor.store(terminal, ordering: .releasing)
  }

  func forget() { descriptor.store(-1, ordering: .releasing) }

  func restore() {
    let terminal = descriptor.load(ordering: .acquiring)
    guard terminal >= 0 else { return }
    let group = owner.load(ordering: .acquiring)
    if group > 0 {
      // Without this, the system stops a background process that changes the terminal.
      signal(SIGTTOU, SIG_IGN)
      tcsetpgrp(terminal, group)
    }
    tcsetattr(terminal, TCSANOW, settings)
  }
}
