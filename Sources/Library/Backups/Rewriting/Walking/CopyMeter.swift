/// Counts what was copied and asks whether to go on.
final class CopyMeter {
  let total: Int64
  private var done: Int64 = 0
  private let progress: (_ done: Int64, _ total: Int64) -> Bool

  init(total: Int64, _ progress: @escaping (_ done: Int64, _ total: Int64) -> Bool) {
    self.total = total
    self.progress = progress
  }

  func add(_ count: Int) throws(WriteFailure) {
    done += Int64(count)
    guard progress(done, total) else { throw .source(BackupArchiveError(.interrupted, "it was stopped")) }
  }
}
