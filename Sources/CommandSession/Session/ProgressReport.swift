import KeychainFormats

/// How work tells how far it has come.
package struct ProgressReport {
  private let send: (Int, Int?) -> Void

  package init(_ send: @escaping (Int, Int?) -> Void) { self.send = send }

  package func update(done: Int, total: Int?) { send(done, total) }
}

/// The status lines of `--json`: at once, and then for each whole percent that is gained.
package final class StatusLines {
  private let phase: String
  private let isQuiet: Bool
  private let write: (String) -> Void
  private var lastPercent = -1

  package init(phase: String, isQuiet: Bool, write: @escaping (String) -> Void) {
    self.phase = phase
    self.isQuiet = isQuiet
    self.write = write
  }

  package func update(done: Int?, total: Int?) {
    guard !isQuiet else { return }
    var fields: [(String, JSONValue)] = [("message_type", "status"), ("phase", .string(phase))]
    if let done {
      let percent = total.map { $0 > 0 ? Int(Double(min(done, $0)) / Double($0) * 100) : 100 } ?? done
      guard percent != lastPercent else { return }
      lastPercent = percent
      fields.append(("done", .integer(Int64(done))))
      if let total { fields.append(("total", .integer(Int64(total)))) }
    }
    write(JSONValue.object(fields).compactText() + "\n")
  }
}
