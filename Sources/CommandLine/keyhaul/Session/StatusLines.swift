import KeyhaulKit

/// The status lines of `--json`: one when the work begins, one at the first progress, and one after each quarter.
final class StatusLines {
  /// The maximum number of status lines of a command.
  static let maximumCount = 10

  private let phase: String
  private let write: (String) -> Void
  private var lastStep = -1

  init(phase: String, write: @escaping (String) -> Void) {
    self.phase = phase
    self.write = write
  }

  func update(done: Int?, total: Int?) {
    var fields: [(String, JSONValue)] = [("message_type", "status"), ("phase", .string(phase))]
    if let done {
      guard let step = step(done: done, total: total), step != lastStep else { return }
      lastStep = step
      fields.append(("done", .integer(Int64(done))))
      if let total { fields.append(("total", .integer(Int64(total)))) }
    }
    write(JSONValue.object(fields).compactText() + "\n")
  }

  /// Returns the number of finished quarters; `nil` if the total is unknown or nothing is done yet.
  private func step(done: Int, total: Int?) -> Int? {
    guard let total, done > 0 || total == 0 else { return nil }
    let share = total > 0 ? Double(min(done, total)) / Double(total) : 1
    return Int(share * 4)
  }
}
