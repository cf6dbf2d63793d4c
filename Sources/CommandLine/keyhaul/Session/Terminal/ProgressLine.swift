import KeyhaulKit

/// What work counts.
enum ProgressUnit: Sendable {
  case step
  /// Of bytes the line says how long it will take.
  case byte
}

/// One line on standard error that says what takes so long, and goes away when it is done.
///
/// Nothing is shown for work that ends within 300 ms. The work runs on the caller's thread, and another thread draws
/// the line. If no thread can be started, the line is drawn whenever the work reports its progress. A terminal stopped
/// with Ctrl-S does not delay the work.
final class ProgressLine: Sendable {
  static let delay = 0.3
  static let interval = 0.1

  private struct State {
    var done: Int?
    var total: Int?
    var shown = ""
    var isEnded = false
    /// The work that draws the line until the line ends.
    var drawing: BackgroundThread?
    var lastDraw: ContinuousClock.Instant?
  }

  private let title: String
  private let unit: ProgressUnit
  private let start = ContinuousClock.now
  private let style: TextStyle
  private let descriptor: Int32
  private let delay: Duration
  private let state = Locked(State())

  /// - Parameters:
  ///   - title: The slow thing by its name: "Deriving key: 10,000,000 rounds".
  ///   - unit: What is counted.
  ///   - style: How it looks.
  ///   - descriptor: Where it is shown.
  ///   - delay: The time, in seconds, that the work may take before the line appears.
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
    let drawing = BackgroundThread(startThread: startThread) { [weak self] shouldContinue in
      guard shouldContinue(delay) else { return }
      repeat { self?.draw() } while shouldContinue(Self.interval)
    }
    state.withLock { $0.drawing = drawing }
  }

  /// Says how far the work has come; drawn at the next turn.
  func update(done: Int, total: Int?) {
    let hasThread = state.withLock {
      $0.done = done
      $0.total = total
      return $0.drawing != nil
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
    // Waits for its end outside the lock, because the last drawing needs the lock.
    _ = state.withLock { $0.drawing.take() }
    state.withLock { state in
      guard !state.isEnded else { return }
      state.isEnded = true
      if !state.shown.isEmpty { try? ByteStream.writeAll(Array("\r\u{1B}[K".utf8), to: descriptor) }
    }
  }

  private func draw() {
    state.withLock { state in
      guard !state.isEnded else { return }
      let text = DisplayWidth.cut(
        Self.text(title, unit: unit, done: state.done, total: state.total, after: start.duration(to: .now)),
        columns: style.width - 1, ellipsis: style.ellipsis)
      guard text != state.shown, ByteStream.takesBytesNow(descriptor) else { return }
      state.shown = text
      try? ByteStream.writeAll(Array("\r\(text)\u{1B}[K".utf8), to: descriptor)
    }
  }

  /// As the text of steps; of bytes "Writing files  312 of 1,024 MB, about 2 min left".
  static func text(
    _ title: String, unit: ProgressUnit, done: Int?, total: Int?, after duration: Duration
  ) -> String {
    guard unit == .byte, let done, let total, total > 0 else { return text(title, done: done, total: total) }
    let isLarge = total >= 10_000_000
    let (divisor, name) = isLarge ? (1_000_000, "MB") : (1_000, "kB")
    let amounts =
      "\(title)  \(HumanReadable.grouped(done / divisor)) of \(HumanReadable.grouped(total / divisor)) \(name)"
    // Sooner nobody can tell.
    guard duration >= .seconds(2), done > 0, done < total else { return amounts }
    let left = duration * (Double(total - done) / Double(done))
    return "\(amounts), \(HumanReadable.estimate(left)) left"
  }

  /// "Sealing items  9 of 16", "Deriving key: 10,000,000 rounds  43 %" where the numbers are large.
  static func text(_ title: String, done: Int?, total: Int?) -> String {
    guard let done else { return title + " ..." }
    guard let total, total > 0 else { return "\(title)  \(HumanReadable.grouped(done))" }
    if total <= 100_000 { return "\(title)  \(HumanReadable.grouped(done)) of \(HumanReadable.grouped(total))" }
    return "\(title)  \(Int(Double(min(done, total)) / Double(total) * 100)) %"
  }
}
