import Foundation
import Synchronization

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A terminal that a test types on and looks at.
final class PseudoTerminal {
  struct Unavailable: Error {}

  /// The path that a program opens instead of `/dev/tty`.
  let path: String
  /// All text that was shown, including echoes.
  private(set) var transcript = ""

  private let ours: Int32
  /// Held open, so that the terminal outlives the programs on it.
  private let theirs: Int32
  private var answered = 0

  init(columns: UInt16 = 80) throws {
    var (ours, theirs): (Int32, Int32) = (-1, -1)
    var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    var name = [CChar](repeating: 0, count: 128)
    guard openpty(&ours, &theirs, nil, nil, &size) == 0, ttyname_r(theirs, &name, name.count) == 0 else {
      throw Unavailable()
    }
    for descriptor in [ours, theirs] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    self.ours = ours
    self.theirs = theirs
    path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    close(ours)
    close(theirs)
  }

  /// Whether something was asked that has not been answered yet.
  var isAtPrompt: Bool {
    guard transcript.utf8.count > answered else { return false }
    return transcript.hasSuffix(": ") || transcript.hasSuffix("] ")
  }

  /// Whether what is typed is shown.
  var echoes: Bool {
    var settings = termios()
    return tcgetattr(theirs, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  func send(_ line: String) {
    answered = transcript.utf8.count
    let bytes = Array((line + "\n").utf8)
    _ = write(ours, bytes, bytes.count)
  }

  /// Takes what is shown within this time.
  func collect(milliseconds: Int32) {
    var ready = pollfd(fd: ours, events: Int16(POLLIN), revents: 0)
    while poll(&ready, 1, milliseconds) > 0, ready.revents & Int16(POLLIN) != 0 {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(ours, &bytes, bytes.count)
      guard count > 0 else { return }
      transcript += String(decoding: bytes.prefix(count), as: UTF8.self).replacing("\r\n", with: "\n")
    }
  }

  /// Types these lines, each when a prompt waits, while `body` runs on this thread.
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
