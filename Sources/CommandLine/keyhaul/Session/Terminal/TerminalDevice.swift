import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The controlling terminal of this process, even if the standard streams are redirected.
final class TerminalDevice {
  /// The maximum length of a line. A terminal delivers fewer bytes at once (`MAX_CANON`).
  static let maximumLineByteCount = 65_536

  private let descriptor: Int32
  /// The settings of the terminal before another process group got it; `nil` while this program has it.
  private var settingsBeforeLending: termios?

  /// - Returns: `nil` if the program has no terminal.
  init?(path: String) {
    let terminal = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard terminal >= 0 else { return nil }
    descriptor = terminal
  }

  deinit { close(descriptor) }

  func show(_ line: String) throws(CommandError) { try write(line + "\n") }

  /// Asks for a line and returns it without its newline.
  func line(_ prompt: String) throws(CommandError) -> String {
    let bytes = try read(prompt)
    return bytes.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Asks for a secret without showing what the user types.
  func secret(_ prompt: String) throws(CommandError) -> Secret {
    var original = termios()
    guard tcgetattr(descriptor, &original) == 0 else { throw unusable(.last) }
    var withoutEcho = original
    withoutEcho.c_lflag &= ~tcflag_t(ECHO)
    // The newline is still shown, so that the next output begins on a new line.
    withoutEcho.c_lflag |= tcflag_t(ECHONL)
    Interruption.willChangeTerminal(descriptor, from: original)
    defer {
      applyDiscardingInput(original)
      Interruption.didRestoreTerminal()
    }
    // Input that was typed before the echo was off is not meant for this prompt.
    guard applyDiscardingInput(withoutEcho) else {
      let reason = Errno.last
      try Interruption.check()
      throw unusable(reason)
    }
    let settings = withoutEcho
    return try read(prompt, onResume: { applyDiscardingInput(settings) }).secret()
  }

  /// Applies settings, and discards input that no one has read yet. Returns whether the system accepted them.
  @discardableResult
  private func applyDiscardingInput(_ settings: termios) -> Bool {
    var settings = settings
    return tcsetattr(descriptor, TCSAFLUSH, &settings) == 0
  }

  /// Whether this program's process group is in the foreground, and may read the terminal.
  var isForeground: Bool { tcgetpgrp(descriptor) == getpgrp() }

  /// Whether another process group currently has this program's terminal.
  var isLent: Bool { settingsBeforeLending != nil }

  /// Makes another process group the terminal's foreground group, as a shell does. It can then read the terminal, and
  /// gets its Ctrl-C.
  ///
  /// - Parameter groupSettings: The settings that the group had when the terminal was last taken back from it; `nil` to
  ///   keep the current settings.
  /// - Returns: `false` if this program does not have the terminal; in that case nothing is changed.
  @discardableResult
  func lend(to group: pid_t, with groupSettings: termios? = nil) -> Bool {
    var settings = termios()
    guard isForeground, tcgetattr(descriptor, &settings) == 0 else { return false }
    settingsBeforeLending = settings
    Interruption.willLendTerminal(descriptor, from: settings)
    if var groupSettings { tcsetattr(descriptor, TCSADRAIN, &groupSettings) }
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
    var groupSettings = termios()
    tcgetattr(descriptor, &groupSettings)
    if resettingSettings { tcsetattr(descriptor, TCSADRAIN, &settings) }
    Interruption.didRestoreTerminal()
    // A pager in this group may have been stopped because it was in the background.
    kill(0, SIGCONT)
    return groupSettings
  }

  /// Makes a process group the foreground group. Blocks SIGTTOU, with which the system would stop a background process.
  private func setForeground(_ group: pid_t) {
    var blocked = sigset_t()
    var previous = sigset_t()
    sigemptyset(&blocked)
    sigaddset(&blocked, SIGTTOU)
    pthread_sigmask(SIG_BLOCK, &blocked, &previous)
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
    tcsetpgrp(descriptor, group)
  }

  private func unusable(_ error: Errno) -> CommandError {
    CommandError(.failed, "cannot ask on the terminal", why: error.reason, of: error)
  }

  private func write(_ text: String) throws(CommandError) {
    do {
      try BufferedOutput.writeAll(Array(text.utf8), to: descriptor)
    } catch {
      try Interruption.check()
      throw unusable(error)
    }
  }

  /// Shows a prompt and reads a line.
  ///
  /// - Parameter onResume: Called before the prompt is shown again, if the program was stopped at the prompt and
  ///   continued.
  private func read(_ prompt: String, onResume: () -> Void = {}) throws(CommandError) -> SecureInputBuffer {
    _ = Interruption.consumeResumption()
    try write(prompt)
    let line = SecureInputBuffer(limit: Self.maximumLineByteCount)
    while true {
      try Interruption.check()
      if Interruption.consumeResumption() {
        onResume()
        try write(prompt)
      }
      let step: SecureInputBuffer.ReadStep
      do {
        step = try line.readOnce(from: descriptor)
      } catch {
        throw unusable(error)
      }
      switch step {
      case .noDataYet: continue
      case .full: throw CommandError(.failed, "the line is too long", why: "over \(HumanReadable.bytes(line.limit))")
      case .end where line.count == 0:
        throw CommandError(.failed, "the terminal was closed", why: "nothing was changed")
      case .end: return line
      case .more where line.endsInNewline:
        line.dropTrailingNewline()
        return line
      case .more: continue
      }
    }
  }
}

extension TerminalDevice {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// Returns the width that the terminal of a descriptor reports; `nil` if it reports none.
  static func reportedWidth(of descriptor: Int32) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }
}
