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

  private func unusable(_ error: Errno) -> CommandFailure {
    CommandFailure(.failed, "cannot ask on the terminal", why: error.reason)
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
      case .full: throw CommandFailure(.failed, "the line is too long", why: "over \(Amounts.bytes(line.limit))")
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
