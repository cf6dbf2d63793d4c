import KeyhaulKit

/// How work tells how far it has come.
struct ProgressReport {
  private let send: (Int, Int?) -> Void

  init(_ send: @escaping (Int, Int?) -> Void) { self.send = send }

  func update(done: Int, total: Int?) { send(done, total) }
}

/// The status lines of `--json`: at once, and then for each whole percent that is gained; where a person reads them, for
/// each quarter of the work.
final class StatusLines {
  private let phase: String
  private let isQuiet: Bool
  private let isOnTerminal: Bool
  private let write: (String) -> Void
  private var lastStep = -1

  init(
    phase: String, isQuiet: Bool, isOnTerminal: Bool = false, write: @escaping (String) -> Void
  ) {
    self.phase = phase
    self.isQuiet = isQuiet
    self.isOnTerminal = isOnTerminal
    self.write = write
  }

  func update(done: Int?, total: Int?) {
    guard !isQuiet else { return }
    var fields: [(String, JSONValue)] = [("message_type", "status"), ("phase", .string(phase))]
    if let done {
      guard let step = step(done: done, total: total), step != lastStep else { return }
      lastStep = step
      fields.append(("done", .integer(Int64(done))))
      if let total { fields.append(("total", .integer(Int64(total)))) }
    }
    write(JSONValue.object(fields).compactText() + "\n")
  }

  /// Returns the progress in whole steps; `nil` if the total is unknown and the output goes to a terminal.
  private func step(done: Int, total: Int?) -> Int? {
    guard let total else { return isOnTerminal ? nil : done }
    let steps = isOnTerminal ? 4.0 : 100.0
    return total > 0 ? Int(Double(min(done, total)) / Double(total) * steps) : Int(steps)
  }
}

extension ProgressReport {
  /// For work on bytes that asks whether to go on.
  func orInterrupted(_ done: Int64, _ total: Int64) -> Bool {
    update(done: Int(clamping: done), total: Int(clamping: total))
    return Interruption.pending == nil
  }
}
