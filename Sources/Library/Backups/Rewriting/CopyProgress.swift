import Basics

/// The number of bytes that were copied or only read, reported to an observer that can stop the work.
final class CopyProgress {
  let total: Int64
  private var byteCount: Int64 = 0
  private let progress: (_ done: Int64, _ total: Int64) -> Bool

  init(total: Int64, _ progress: @escaping (_ done: Int64, _ total: Int64) -> Bool) {
    self.total = total
    self.progress = progress
  }

  func add(_ count: Int) throws(KeyhaulError) {
    byteCount += Int64(count)
    guard progress(byteCount, total) else { throw KeyhaulError(.interrupted, "it was stopped") }
  }
}
