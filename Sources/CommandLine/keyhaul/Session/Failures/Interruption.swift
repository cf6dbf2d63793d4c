import KeyhaulKit
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Ctrl-C and its relatives: the first asks the work to stop and roll back, the second leaves at once.
///
/// Both are safe, because every write is a rename or a transaction. Long work calls `check()` between its steps.
/// Waiting system calls return with `EINTR`. A signal that arrives just before such a call does not end it. Therefore
/// an alarm follows the first signal every second until the program ends.
enum Interruption {
  private static let received = Atomic<Int32>(0)
  private static let mayLeaveAtOnce = Atomic<Bool>(false)
  private static let mustReturn = Atomic<Bool>(false)
  private static let resumed = Atomic<Bool>(false)
  /// The process group of a user's command that runs for this program; 0 if no command is running.
  private static let commandGroup = Atomic<Int32>(0)
  private static let isLeaving = Atomic<Bool>(false)
  /// The terminal's settings while a prompt has switched its echo off; the handler may read it at any moment.
  private static let savedTerminal = SavedTerminal()

  /// Takes over SIGINT, SIGTERM and SIGHUP, except where the parent wants them ignored (`nohup`, jobs in the background),
  /// notices SIGCONT, and turns a closed pipe and a file over the shell's size limit into errors of the write.
  static func install() {
    _ = received.load(ordering: .relaxed)
    _ = mayLeaveAtOnce.load(ordering: .relaxed)
    _ = mustReturn.load(ordering: .relaxed)
    _ = resumed.load(ordering: .relaxed)
    _ = commandGroup.load(ordering: .relaxed)
    _ = isLeaving.load(ordering: .relaxed)
    _ = savedTerminal
    _ = previous
    _ = outOfMemory
    // Its beginning is made ready: a handler must not do that.
    ProcessMemory.wipeSecrets()
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      var current = sigaction()
      guard sigaction(number, nil, &current) == 0 else { continue }
      if isIgnored(current) { continue }
      var action = sigaction()
      setHandler(&action) { number in Interruption.handle(number) }
      sigaction(number, &action, nil)
    }
    var alarm = sigaction()
    setHandler(&alarm) { _ in Interruption.handleAlarm() }
    sigaction(SIGALRM, &alarm, nil)
    for number in crashes {
      // A signal that the parent wants ignored must not wipe the secrets of a program that goes on.
      guard sigaction(number, nil, previous + Int(number)) == 0, !isIgnored(previous[Int(number)]) else { continue }
      var action = sigaction()
      setHandler(&action) { number in Interruption.crash(number) }
      // On the stack that Swift's own handler has, if there is one.
      action.sa_flags = Int32(SA_ONSTACK)
      sigaction(number, &action, nil)
    }
    var resumption = sigaction()
    setHandler(&resumption) { _ in Interruption.resumed.store(true, ordering: .releasing) }
    sigaction(SIGCONT, &resumption, nil)
  }

  /// Whether the program was stopped (Ctrl-Z) and goes on since this was asked last: the shell has had the terminal in
  /// between, and may have left it otherwise than a prompt wants it.
  static func takeResumption() -> Bool { resumed.exchange(false, ordering: .acquiringAndReleasing) }

  /// The signal that asked the program to stop, if one has.
  static var pending: Int32? {
    let number = received.load(ordering: .acquiring)
    return number == 0 ? nil : number
  }

  /// Ends the work where the program was asked to stop.
  ///
  /// - Parameter state: What state things are in: "nothing was changed".
  static func check(_ state: String = "nothing was changed") throws(CommandFailure) {
    if let number = pending { throw failure(number, state: state) }
  }

  static func failure(_ number: Int32, state: String) -> CommandFailure {
    CommandFailure(.signal(number), "stopped by \(number == SIGINT ? "Ctrl-C" : "signal \(number)")", why: state)
  }

  /// Runs work that has changed nothing, and only waits for another process's bytes or only computes. During this work,
  /// the first signal ends the program at once.
  static func leavingAtOnce<Value: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    if mustReturn.load(ordering: .acquiring) { return try body() }
    let outer = mayLeaveAtOnce.exchange(true, ordering: .acquiringAndReleasing)
    defer { mayLeaveAtOnce.store(outer, ordering: .releasing) }
    return try body()
  }

  /// Work whose caller has something to take away afterwards: the first signal never leaves at once in it, not even where
  /// a part of it only waits.
  static func returning<Value: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let outer = mustReturn.exchange(true, ordering: .acquiringAndReleasing)
    defer { mustReturn.store(outer, ordering: .releasing) }
    return try body()
  }

  /// Remembers how a terminal was, so that leaving in haste puts it back.
  static func willChangeTerminal(_ descriptor: Int32, from settings: termios) {
    savedTerminal.save(settings, of: descriptor)
  }

  /// Remembers the settings of a terminal before another process group gets it, so that an immediate exit takes it
  /// back.
  static func willLendTerminal(_ descriptor: Int32, from settings: termios) {
    savedTerminal.save(settings, of: descriptor, ownedBy: getpgrp())
  }

  static func didRestoreTerminal() { savedTerminal.forget() }

  /// Remembers a user's command that runs in its own process group, so that an immediate exit ends it.
  static func didStartCommand(in group: pid_t) { commandGroup.store(group, ordering: .releasing) }

  static func didEndCommand() { commandGroup.store(0, ordering: .releasing) }

  /// Kills the user's command. Calls nothing that POSIX forbids in a signal handler.
  private static func endCommand() {
    let group = commandGroup.load(ordering: .acquiring)
    if group > 0 { kill(-group, SIGKILL) }
  }

  private static func handle(_ number: Int32) {
    // Nothing but calls that POSIX allows in a signal handler.
    let isFirst = received.compareExchange(expected: 0, desired: number, ordering: .acquiringAndReleasing).exchanged
    if isFirst, !mayLeaveAtOnce.load(ordering: .acquiring) {
      alarm(1)
      return
    }
    leave(number)
  }

  /// Interrupts waiting calls again, including a call that began just after the first signal.
  private static func handleAlarm() {
    let number = received.load(ordering: .acquiring)
    guard number != 0 else { return }
    if mayLeaveAtOnce.load(ordering: .acquiring) { leave(number) }
    alarm(1)
  }

  private static func leave(_ number: Int32) {
    endCommand()
    isLeaving.store(true, ordering: .releasing)
    savedTerminal.restore()
    ProcessMemory.wipeSecrets()
    _exit(128 &+ number)
  }

  /// What ends a program at once: Ctrl-\\, `abort`, and faults of its own.
  private static let crashes = [SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP]

  /// The earlier actions of the signals, by signal number. Swift's action may show the place of the crash.
  private nonisolated(unsafe) static let previous = {
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
    if isLeaving.load(ordering: .acquiring) {
      // Another thread used a secret after it was overwritten. The program is about to end.
      sleep(1)
      _exit(128 &+ received.load(ordering: .acquiring))
    }
    endCommand()
    savedTerminal.restore()
    ProcessMemory.wipeSecrets()
    if ProcessMemory.isUsedUp {
      _ = write(2, outOfMemory.utf8Start, outOfMemory.utf8CodeUnitCount)
      _exit(CommandStatus.failed.code)
    }
    sigaction(number, previous + Int(number), nil)
    raise(number)
  }

  private static func isIgnored(_ action: sigaction) -> Bool { isHandled(action, by: SIG_IGN) }

  private static func isHandled(_ action: sigaction, by standard: (@convention(c) (Int32) -> Void)?) -> Bool {
    #if canImport(Darwin)
      let handler = action.__sigaction_u.__sa_handler
    #else
      let handler = action.__sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(standard, to: Int.self)
  }

  private static func setHandler(_ action: inout sigaction, _ handler: @convention(c) (Int32) -> Void) {
    #if canImport(Darwin)
      action.__sigaction_u.__sa_handler = handler
    #else
      action.__sigaction_handler.sa_handler = handler
    #endif
    // No SA_RESTART: a prompt that waits for a line must notice.
    action.sa_flags = 0
    sigemptyset(&action.sa_mask)
  }
}

/// A terminal's settings at an address that never moves, for the signal handler.
private final class SavedTerminal: Sendable {
  private let descriptor = Atomic<Int32>(-1)
  /// The process group that gets the terminal back; 0 if no other group has it.
  private let owner = Atomic<Int32>(0)
  private nonisolated(unsafe) let settings = UnsafeMutablePointer<termios>.allocate(capacity: 1)

  init() { settings.initialize(to: termios()) }

  func save(_ value: termios, of terminal: Int32, ownedBy group: pid_t = 0) {
    settings.pointee = value
    owner.store(group, ordering: .releasing)
    descriptor.store(terminal, ordering: .releasing)
  }

  func forget() { descriptor.store(-1, ordering: .releasing) }

  func restore() {
    let terminal = descriptor.load(ordering: .acquiring)
    guard terminal >= 0 else { return }
    let group = owner.load(ordering: .acquiring)
    if group > 0 {
      // Without this, the system stops a background process that changes the terminal. The process ends afterwards.
      signal(SIGTTOU, SIG_IGN)
      tcsetpgrp(terminal, group)
    }
    tcsetattr(terminal, TCSANOW, settings)
  }
}
