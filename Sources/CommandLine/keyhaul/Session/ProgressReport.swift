/// A closure that receives the progress of work.
struct ProgressReport {
  /// A report that discards the progress.
  static var ignored: ProgressReport { ProgressReport { _, _ in } }

  private let send: (_ done: Int, _ total: Int?) -> Void

  init(_ send: @escaping (_ done: Int, _ total: Int?) -> Void) { self.send = send }

  func update(done: Int, total: Int?) { send(done, total) }
}

extension ProgressReport {
  /// Reports the progress in bytes. Returns `false` once a signal has asked the program to stop.
  func updateUnlessInterrupted(_ done: Int64, _ total: Int64) -> Bool {
    update(done: Int(clamping: done), total: Int(clamping: total))
    return Interruption.pending == nil
  }
}
