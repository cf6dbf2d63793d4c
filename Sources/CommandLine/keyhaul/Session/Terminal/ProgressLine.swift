import KeyhaulKit

/// The unit of a progress line.
enum ProgressUnit: Sendable {
  case step
  /// Bytes, for which the line estimates the remaining time.
  case byte
}

/// A line on standard error that shows the progress of slow work and disappears when the work is done.
///
/// Nothing is shown for work that ends within 300 ms. The work runs on the caller's thread, and another thread draws
/// the line. If no thread can be started, the line is drawn when the work reports progress. A terminal that was stopped
/// with Ctrl-S does not delay the work.
final class ProgressLine: Sendable {
  /// The time after which the line appears, in seconds.
  static let delay = 0.3
  /// The time between two drawings, in seconds.
  static let interval = 0.1

  private struct State {
    var done: Int?
    var total: Int?
    /// The text on the terminal; empty before the first drawing.
    var shownText = ""
    var isEnded = false
    /// The thread that draws the line until it ends.
    var drawingThread: BackgroundThread?
    var lastDraw: ContinuousClock.Instant?
  }

  private let title: String
  private let unit: ProgressUnit
  private let start = ContinuousClock.now
  private let style: TextStyle
  private let descriptor: Int32
  private let delay: Duration
  private let state = Locked(State())

  /// Starts a progress line.
  ///
  /// - Parameters:
  ///   - title: The title of the work: "Deriving key: 10,000,000 iterations".
  ///   - unit: The unit of progress.
  ///   - style: The style of the line.
  ///   - descriptor: The descriptor of the terminal.
  ///   - delay: The time, in seconds, after which the line appears.
  ///   - startThread: Starts the drawing thread.
  init(
    _ title: String, unit: ProgressUnit = .step, style: TextStyle, descriptor: Int32,
    delay: Double = ProgressLine.delay, startThread: SecureThread.Starter = SecureThread.start
  ) {
    self.unit = unit
    self.title = style.adapted(UntrustedText.escaped(title))
    self.style = style
    self.descriptor = descriptor
    self.delay = .seconds(delay)
    let drawingThread = BackgroundThread(startThread: startThread) { [weak self] shouldContinue in
      // `shouldContinue` waits for the given time, and returns whether the line is still needed.
      guard shouldContinue(delay) else { return }
      repeat { self?.draw() } while shouldContinue(Self.interval)
    }
    state.withLock { $0.drawingThread = drawingThread }
  }

  /// Updates the progress, which is drawn with the next redraw.
  func update(done: Int, total: Int?) {
    let hasThread = state.withLock {
      $0.done = done
      $0.total = total
      return $0.drawingThread != nil
    }
    if !hasThread { drawIfDue() }
  }

  /// Draws the line if a redraw is due.
  private func drawIfDue() {
    let now = ContinuousClock.now
    guard start.duration(to: now) >= delay else { return }
    let isDue = state.withLock { state in
      if let last = state.lastDraw, last.duration(to: now) < .seconds(Self.interval) { return false }
      state.lastDraw = now
      return true
    }
    if isDue { draw() }
  }

  /// Ends the line and clears it from the terminal.
  func end() {
    // Dropping the thread waits for its last drawing, which locks the state. So this happens outside of `withLock`.
    _ = state.withLock { $0.drawingThread.take() }
    state.withLock { state in
      guard !state.isEnded else { return }
      state.isEnded = true
      if !state.shownText.isEmpty { try? BufferedOutput.writeAll(Array("\r\u{1B}[K".utf8), to: descriptor) }
    }
  }

  private func draw() {
    state.withLock { state in
      guard !state.isEnded else { return }
      let text = DisplayWidth.cut(
        Self.text(title, unit: unit, done: state.done, total: state.total, after: start.duration(to: .now)),
        columns: style.width - 1, ellipsis: style.ellipsis)
      guard text != state.shownText, BufferedOutput.acceptsBytesNow(descriptor) else { return }
      state.shownText = text
      try? BufferedOutput.writeAll(Array("\r\(text)\u{1B}[K".utf8), to: descriptor)
    }
  }

  /// Returns the text of the line. For bytes: "Writing files  312 of 1,024 MB, about 2 min left".
  static func text(
    _ title: String, unit: ProgressUnit, done: Int?, total: Int?, after duration: Duration
  ) -> String {
    guard unit == .byte, let done, let total, total > 0 else { return text(title, done: done, total: total) }
    let isLarge = total >= 10_000_000
    let (divisor, name) = isLarge ? (1_000_000, "MB") : (1_000, "kB")
    let amounts =
      "\(title)  \(HumanReadable.grouped(done / divisor)) of \(HumanReadable.grouped(total / divisor)) \(name)"
    // An earlier estimate would not be reliable.
    guard duration >= .seconds(2), done > 0, done < total else { return amounts }
    let remainingTime = duration * (Double(total - done) / Double(done))
    return "\(amounts), \(HumanReadable.estimate(remainingTime)) left"
  }

  /// Returns the text of the line: "Encrypting items  9 of 16", or a percentage for large numbers.
  static func text(_ title: String, done: Int?, total: Int?) -> String {
    guard let done else { return title + " ..." }
    guard let total, total > 0 else { return "\(title)  \(HumanReadable.grouped(done))" }
    if total <= 100_000 { return "\(title)  \(HumanReadable.grouped(done)) of \(HumanReadable.grouped(total))" }
    return "\(title)  \(Int(Double(min(done, total)) / Double(total) * 100)) %"
  }
}
