import Foundation
import Synchronization

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A pseudo-terminal for testing a program that talks to its user. The test types lines and reads what is shown.
final class PseudoTerminal {
  /// The error if the system has no free pseudo-terminal.
  struct Unavailable: Error {}

  /// The path that a program opens instead of `/dev/tty`.
  let path: String
  /// All text that was shown and collected, including the echo of typed lines.
  private(set) var transcript = ""
  /// The bytes of the transcript, with the terminal's line ends. A character may be split between two reads, so all bytes
  /// are decoded together.
  private var receivedBytes: [UInt8] = []

  /// The descriptor on which the test types and reads.
  private let controller: Int32
  /// The descriptor of the terminal itself. It stays open, because the terminal must outlive the programs on it.
  private let terminal: Int32
  /// The number of received bytes when the last line was typed. Prompts in these bytes are answered.
  private var answeredByteCount = 0

  /// Opens a pseudo-terminal of 24 lines.
  init(columns: UInt16 = 80) throws {
    var (controller, terminal): (Int32, Int32) = (-1, -1)
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    var name = [CChar](repeating: 0, count: 128)
    guard openpty(&controller, &terminal, nil, nil, &size) == 0 else { throw Unavailable() }
    guard ttyname_r(terminal, &name, name.count) == 0 else {
      close(controller)
      close(terminal)
      throw Unavailable()
    }
    for descriptor in [controller, terminal] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    self.controller = controller
    self.terminal = terminal
    path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    close(controller)
    close(terminal)
  }

  /// Whether the collected text ends with a prompt that is not answered yet.
  var isAtPrompt: Bool {
    guard receivedBytes.count > answeredByteCount else { return false }
    return transcript.hasSuffix(": ") || transcript.hasSuffix("] ")
  }

  /// Whether the terminal shows what is typed.
  var echoes: Bool {
    var settings = termios()
    return tcgetattr(terminal, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Types a line and the return key.
  func send(_ line: String) {
    answeredByteCount = receivedBytes.count
    let bytes = Array((line + "\n").utf8)
    _ = write(controller, bytes, bytes.count)
  }

  /// Adds new text to the transcript until none has arrived for the given time.
  ///
  /// - Parameter milliseconds: The time without text. It starts again after each read, so the call takes longer if more
  ///   text arrives.
  func collect(milliseconds: Int32) {
    var ready = pollfd(fd: controller, events: Int16(POLLIN), revents: 0)
    while poll(&ready, 1, milliseconds) > 0, ready.revents & Int16(POLLIN) != 0 {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(controller, &bytes, bytes.count)
      guard count > 0 else { return }
      receivedBytes += bytes.prefix(count)
      transcript = String(decoding: receivedBytes, as: UTF8.self).replacing("\r\n", with: "\n")
    }
  }

  /// Runs a closure while another thread types lines on a new terminal, one at each prompt.
  ///
  /// - Parameters:
  ///   - lines: The lines to type. A line is typed only when there is a prompt for it.
  ///   - body: The closure, which runs on this thread.
  /// - Returns: The result of the closure, and the transcript.
  static func typing<Result>(_ lines: [String], _ body: (PseudoTerminal) throws -> Result) throws -> (Result, String) {
    let terminal = try PseudoTerminal()
    // `body` may use only the path and the echo, because the typing thread changes everything else.
    nonisolated(unsafe) let typedTerminal = terminal
    let isBodyFinished = Mutex(false)
    let threadEnd = DispatchSemaphore(value: 0)
    let thread = Thread {
      var unsentLines = lines[...]
      while !isBodyFinished.withLock({ $0 }) {
        typedTerminal.collect(milliseconds: 10)
        if typedTerminal.isAtPrompt, let line = unsentLines.popFirst() { typedTerminal.send(line) }
      }
      typedTerminal.collect(milliseconds: 10)
      threadEnd.signal()
    }
    thread.start()
    let result = Swift.Result<Result, any Error> { try body(terminal) }
    isBodyFinished.withLock { $0 = true }
    threadEnd.wait()
    return (try result.get(), terminal.transcript)
  }
}
