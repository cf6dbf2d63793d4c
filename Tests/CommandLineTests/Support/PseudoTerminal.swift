import Foundation
import Synchronization

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A pseudo-terminal on which a test types lines and reads the text.
final class PseudoTerminal {
  struct Unavailable: Error {}

  /// The path that a program opens instead of `/dev/tty`.
  let path: String
  /// All text that was shown, including echoes.
  private(set) var transcript = ""

  /// The descriptor on which the test types and reads.
  private let controller: Int32
  /// The descriptor of the terminal itself, which stays open so that the terminal outlives the programs on it.
  private let terminal: Int32
  /// The length of the transcript at the last answer, in bytes.
  private var answeredByteCount = 0

  init(columns: UInt16 = 80) throws {
    var (controller, terminal): (Int32, Int32) = (-1, -1)
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    var name = [CChar](repeating: 0, count: 128)
    guard openpty(&controller, &terminal, nil, nil, &size) == 0, ttyname_r(terminal, &name, name.count) == 0 else {
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

  /// Whether a prompt waits for an answer.
  var isAtPrompt: Bool {
    guard transcript.utf8.count > answeredByteCount else { return false }
    return transcript.hasSuffix(": ") || transcript.hasSuffix("] ")
  }

  /// Whether what is typed is shown.
  var echoes: Bool {
    var settings = termios()
    return tcgetattr(terminal, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  func send(_ line: String) {
    answeredByteCount = transcript.utf8.count
    let bytes = Array((line + "\n").utf8)
    _ = write(controller, bytes, bytes.count)
  }

  /// Adds the text that is shown within this time to the transcript.
  func collect(milliseconds: Int32) {
    var ready = pollfd(fd: controller, events: Int16(POLLIN), revents: 0)
    while poll(&ready, 1, milliseconds) > 0, ready.revents & Int16(POLLIN) != 0 {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(controller, &bytes, bytes.count)
      guard count > 0 else { return }
      transcript += String(decoding: bytes.prefix(count), as: UTF8.self).replacing("\r\n", with: "\n")
    }
  }

  /// Types these lines, each when a prompt waits, while `body` runs on this thread.
  ///
  /// - Returns: The result of `body` and the transcript.
  static func typing<Result>(_ lines: [String], _ body: (PseudoTerminal) throws -> Result) throws -> (Result, String) {
    let terminal = try PseudoTerminal()
    nonisolated(unsafe) let typist = terminal
    let isOver = Mutex(false)
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      var remaining = lines[...]
      while !isOver.withLock({ $0 }) {
        typist.collect(milliseconds: 10)
        if typist.isAtPrompt, let line = remaining.popFirst() { typist.send(line) }
      }
      typist.collect(milliseconds: 10)
      done.signal()
    }
    thread.start()
    let result = Swift.Result<Result, any Error> { try body(terminal) }
    isOver.withLock { $0 = true }
    done.wait()
    return (try result.get(), terminal.transcript)
  }
}
