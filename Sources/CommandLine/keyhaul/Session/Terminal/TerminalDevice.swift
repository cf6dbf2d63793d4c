import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The terminal of this session itself, whatever the standard streams are connected to.
final class TerminalDevice {
  /// The longest line that a terminal hands over at once (`MAX_CANON` is smaller everywhere).
  static let maximumLineByteCount = 65_536

  private let descriptor: Int32
  /// The settings of the terminal before another process group got it; `nil` while this program has it.
  private var settingsBeforeLending: termios?

  /// - Returns: `nil` if the program has no terminal.
  init?(path: String) {
    let opened = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard opened >= 0 else { return nil }
    descriptor = opened
  }

  deinit { close(descriptor) }

  func show(_ line: String) throws(CommandFailure) { try write(line + "\n") }

  /// Asks for a line and returns it without its newline.
  func line(_ prompt: String) throws(CommandFailure) -> String {
    let bytes = try read(prompt)
    return bytes.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Asks for a secret and shows nothing of what is typed.
  func secret(_ prompt: String) throws(CommandFailure) -> Secret {
    var settings = termios()
    guard tcgetattr(descriptor, &settings) == 0 else { throw unusable(.last) }
    let before = settings
    settings.c_lflag &= ~tcflag_t(ECHO)
    settings.c_lflag |= tcflag_t(ECHONL)
    Interruption.willChangeTerminal(descriptor, from: before)
    defer {
      var settings = before
      tcsetattr(descriptor, TCSAFLUSH, &settings)
      Interruption.didRestoreTerminal()
    }
    // What was typed ahead was typed before the echo was off, and is not meant for this prompt.
    guard tcsetattr(descriptor, TCSAFLUSH, &settings) == 0 else {
      let reason = Errno.last
      try Interruption.check()
      throw unusable(reason)
    }
    let hidden = settings
    return try read(prompt) { [descriptor] in
      var settings = hidden
      tcsetattr(descriptor, TCSAFLUSH, &settings)
    }.secret()
  }

  /// Whether this program's process group is in the foreground, and so may read the terminal.
  var isForeground: Bool { tcgetpgrp(descriptor) == getpgrp() }

  /// Whether another process group currently has this program's terminal.
  var isLent: Bool { settingsBeforeLending != nil }

  /// Makes another process group the terminal's foreground group, as a shell does. It can then read the terminal, and
  /// gets its Ctrl-C.
  ///
  /// - Parameter selection: The group's settings when the terminal was last taken back from it.
  /// - Returns: `false` if this program does not have the terminal; in that case nothing is changed.
  @discardableResult
  func lend(to group: pid_t, with wanted: termios? = nil) -> Bool {
    var settings = termios()
    guard isForeground, tcgetattr(descriptor, &settings) == 0 else { return false }
    settingsBeforeLending = settings
    Interruption.willLendTerminal(descriptor, from: settings)
    if var wanted { tcsetattr(descriptor, TCSADRAIN, &wanted) }
    setForeground(group)
    return true
  }

  /// Takes the terminal back, if another process group has it.
  ///
  /// - Parameter resettingSettings: Whether to restore the earlier settings, for a command that could not restore them
  ///   itself.
  /// - Returns: The settings that the other group left; `nil` if no other group had the terminal.
  func takeBack(resettingSettings: Bool) -> termios? {
    guard var settings = settingsBeforeLending else { return nil }
    settingsBeforeLending = nil
    setForeground(getpgrp())
    var left = termios()
    tcgetattr(descriptor, &left)
    if resettingSettings { tcsetattr(descriptor, TCSADRAIN, &settings) }
    Interruption.didRestoreTerminal()
    // A pager in this group may have been stopped because it was in the background.
    kill(0, SIGCONT)
    return left
  }

  /// The system stops a background group that changes this, unless the group blocks the signal.
  private func setForeground(_ group: pid_t) {
    var blocked = sigset_t()
    var before = sigset_t()
    sigemptyset(&blocked)
    sigaddset(&blocked, SIGTTOU)
    pthread_sigmask(SIG_BLOCK, &blocked, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    tcsetpgrp(descriptor, group)
  }

  private func unusable(_ error: Errno) -> CommandFailure {
    CommandFailure(.failed, "cannot ask on the terminal", why: error.reason, of: error)
  }

  private func write(_ text: String) throws(CommandFailure) {
    do {
      try ByteStream.writeAll(Array(text.utf8), to: descriptor)
    } catch {
      try Interruption.check()
      throw unusable(error)
    }
  }

  /// - Parameter whenResumed: Called where the program was stopped at the prompt and goes on, before it asks again.
  private func read(_ prompt: String, whenResumed: () -> Void = {}) throws(CommandFailure) -> WipedBuffer {
    _ = Interruption.takeResumption()
    try write(prompt)
    let line = WipedBuffer(limit: Self.maximumLineByteCount)
    while true {
      try Interruption.check()
      if Interruption.takeResumption() {
        whenResumed()
        try write(prompt)
      }
      let outcome: WipedBuffer.ReadStep
      do {
        outcome = try line.readOnce(from: descriptor)
      } catch {
        throw unusable(error)
      }
      switch outcome {
      case .noDataYet: continue
      case .full: throw CommandFailure(.failed, "the line is too long", why: "over \(HumanReadable.bytes(line.limit))")
      case .end where line.count == 0:
        throw CommandFailure(.failed, "the terminal was closed", why: "nothing was changed")
      case .end: return line
      case .more where line.endsInNewline:
        line.dropTrailingNewline()
        return line
      case .more: continue
      }
    }
  }
}
