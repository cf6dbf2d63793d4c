package import Dispatch
import KeychainFormats
import Synchronization

/// One line on standard error that says what takes so long, and goes away when it is done.
///
/// Nothing is shown for work that ends within 300 ms. The work itself runs on the caller's thread.
package final class ProgressLine: Sendable {
  package static let delay = DispatchTimeInterval.milliseconds(300)
  package static let interval = DispatchTimeInterval.milliseconds(100)

  private struct State {
    var done: Int?
    var total: Int?
    var shown = ""
    var isEnded = false
  }

  private let title: String
  private let style: TextStyle
  private let descriptor: Int32
  private let state = Mutex(State())
  private nonisolated(unsafe) let timer: any DispatchSourceTimer

  /// - Parameter title: The slow thing by its name: "Deriving key: 10,000,000 rounds".
  package init(_ title: String, style: TextStyle, descriptor: Int32) {
    self.title = style.adapted(HostileText.shown(title))
    self.style = style
    self.descriptor = descriptor
    let source = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
    timer = source
    source.setEventHandler { [weak self] in self?.draw() }
    source.schedule(deadline: .now() + Self.delay, repeating: Self.interval)
    source.resume()
  }

  /// Says how far the work has come; drawn at the next turn.
  package func update(done: Int, total: Int?) {
    state.withLock {
      $0.done = done
      $0.total = total
    }
  }

  /// Ends the line and clears it from the terminal.
  package func end() {
    timer.cancel()
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
        Self.text(title, done: state.done, total: state.total), columns: style.width - 1, ellipsis: style.ellipsis)
      guard text != state.shown else { return }
      state.shown = text
      try? ByteStream.writeAll(Array("\r\(text)\u{1B}[K".utf8), to: descriptor)
    }
  }

  /// "Sealing items  9 of 16", "Deriving key: 10,000,000 rounds  43 %" where the numbers are large.
  package static func text(_ title: String, done: Int?, total: Int?) -> String {
    guard let done else { return title + " ..." }
    guard let total, total > 0 else { return "\(title)  \(Amounts.grouped(done))" }
    if total <= 100_000 { return "\(title)  \(Amounts.grouped(done)) of \(Amounts.grouped(total))" }
    return "\(title)  \(Int(Double(min(done, total)) / Double(total) * 100)) %"
  }
}
