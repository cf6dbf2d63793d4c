import Basics
import Dispatch
import KeychainFormats
import Synchronization
import SystemPackage

/// Distributes the entries of a plan to workers, and writes the results to the manifest in the plan's order.
///
/// An entry is written to the manifest after its file is synced, in batches. At most a few thousand entries are ahead
/// of the first unfinished one, which limits the memory.
final class ExtractionJournal: Sendable {
  /// The maximum number of distributed entries that are not in the manifest yet.
  private static let maximumPendingCount = 2_048
  /// The number of files at which a batch is synced. If files are slow, a batch is synced earlier, with fewer files.
  private static let batchCount = 512
  /// The time after which a batch is synced even if it is not full.
  private static let batchPatience = Duration.milliseconds(500)
  private static let reportInterval = DispatchTimeInterval.milliseconds(50)

  /// A result. `wasKept` is whether an earlier run has written the file.
  private typealias Extracted = (record: ExtractedRecord, wasKept: Bool)

  private struct State: ~Copyable {
    var file: OwnedFileDescriptor?
    var byteCount: Int64
    var nextIndex = 0
    /// The number of entries in the manifest, and thus the position of the next one.
    var writtenCount = 0
    /// Finished entries whose files might not be synced yet.
    var unsynced: [Int: Extracted] = [:]
    /// Entries with synced files that wait for earlier entries.
    var waiting: [Int: Extracted] = [:]
    var result = ExtractedFiles()
    var failure: KeyhaulError?

    init(_ file: consuming OwnedFileDescriptor, byteCount: Int) {
      self.file = consume file
      self.byteCount = Int64(byteCount)
    }
  }

  private let count: Int
  private let system: FileSystem
  private let state: Locked<State>
  private let isStopped = Atomic<Bool>(false)
  private let readByteCounter = Atomic<Int64>(0)
  /// The number of entries that may still be distributed.
  ///
  /// The initial value is zero, and `init` signals it up to the maximum. libdispatch ends the process if a semaphore is
  /// deallocated below its initial value, as it could be in a stopped extraction.
  private let capacity = DispatchSemaphore(value: 0)
  /// Signaled when a batch is full.
  private let batches = DispatchSemaphore(value: 0)
  private let folder: ExtractionFolder

  /// Creates a journal.
  ///
  /// - Parameters:
  ///   - file: The new and empty file of the manifest.
  ///   - folder: The folder of the entries.
  ///   - header: The first line.
  ///   - count: The number of entries.
  init(
    _ file: consuming OwnedFileDescriptor, in folder: ExtractionFolder, header: JSONValue, count: Int
  ) throws(Errno) {
    let bytes = Array((header.compactText() + "\n").utf8)
    self.folder = folder
    system = folder.system
    try system.writeAll(bytes, to: file.raw)
    self.count = count
    state = Locked(State(file, byteCount: bytes.count))
    for _ in 0..<Self.maximumPendingCount { capacity.signal() }
  }

  /// Returns the position of the next entry to extract, or `nil` if no entry is left or the extraction was stopped.
  func next() -> Int? {
    capacity.wait()
    let position = state.withLock { state -> Int? in
      guard !hasStopped, state.nextIndex < count else { return nil }
      state.nextIndex += 1
      return state.nextIndex - 1
    }
    // Passes the signal on to the next waiting thread.
    if position == nil { capacity.signal() }
    return position
  }

  /// Records the result of an entry.
  func record(_ record: ExtractedRecord, wasKept: Bool, at position: Int) {
    let isFull = state.withLock { state in
      state.unsynced[position] = (record, wasKept)
      return state.unsynced.count == Self.batchCount
    }
    if isFull { batches.signal() }
  }

  /// Syncs the entries in batches on the current thread, until `isFinished` returns `true`.
  ///
  /// - Parameter report: Called several times a second, except while a batch is being synced to disk.
  func flush(until isFinished: () -> Bool, reporting report: () -> Void) {
    var lastBatch = ContinuousClock.now
    while true {
      // The last batch contains all entries that were recorded before `isFinished` returned `true`.
      let isLast = isFinished()
      let isFull = !isLast && batches.wait(timeout: .now() + Self.reportInterval) == .success
      report()
      if isLast || isFull || lastBatch.duration(to: .now) >= Self.batchPatience {
        flushBatch()
        lastBatch = .now
      }
      if isLast { return }
    }
  }

  /// Syncs the batch if it is full. For a caller that extracts on its own thread, without `flush(until:reporting:)`.
  func flushFullBatch() {
    if batches.wait(timeout: .now()) == .success { flushBatch() }
  }

  /// Wakes the thread in `flush(until:reporting:)`, so that it checks `isFinished` again.
  func wake() { batches.signal() }

  /// Syncs the recorded entries, and writes them to the manifest.
  private func flushBatch() {
    let batch = state.withLock { state in
      let batch = state.unsynced
      state.unsynced = [:]
      return batch
    }
    guard !batch.isEmpty else { return }
    do throws(Errno) {
      try system.syncFileSystem(of: folder.root.descriptor)
    } catch {
      return stop(folder.explain(error))
    }
    let completedCount = state.withLock { state in write(batch, &state) }
    for _ in 0..<completedCount { capacity.signal() }
  }

  /// Writes a batch and returns the number of entries that have been completed.
  private func write(_ batch: [Int: Extracted], _ state: inout State) -> Int {
    state.waiting.merge(batch) { $1 }
    var lines: [UInt8] = []
    let firstPosition = state.writtenCount
    while let (record, wasKept) = state.waiting.removeValue(forKey: state.writtenCount) {
      lines += Array((record.line.compactText() + "\n").utf8)
      state.result.add(record, wasKept: wasKept)
      state.writtenCount += 1
    }
    do throws(Errno) {
      switch state.file {
      case .some(let file): try system.writeAll(lines, to: file.raw)
      case .none: break
      }
      state.byteCount += Int64(lines.count)
    } catch {
      fail(
        BackupInstaller(system: system).explain(error, path: ExtractionFolder.manifestName, needs: Int64(lines.count)),
        &state)
    }
    return state.writtenCount - firstPosition
  }

  /// Adds to the number of bytes that were read.
  func addReadBytes(_ byteCount: Int64) { readByteCounter.wrappingAdd(byteCount, ordering: .relaxed) }

  /// The number of bytes that were read, for the progress.
  var readByteCount: Int64 { readByteCounter.load(ordering: .relaxed) }

  var hasStopped: Bool { isStopped.load(ordering: .acquiring) }

  /// Stops the work with an error. Only the first error counts.
  func stop(_ failure: KeyhaulError) {
    state.withLock { fail(failure, &$0) }
    // Wakes a waiting thread, which then sees the failure.
    capacity.signal()
  }

  private func fail(_ failure: KeyhaulError, _ state: inout State) {
    if state.failure == nil { state.failure = failure }
    isStopped.store(true, ordering: .releasing)
  }

  /// Closes and syncs the manifest.
  ///
  /// - Throws: The error that stopped the work.
  func finish() throws(KeyhaulError) -> ExtractedFiles {
    try state.withLock { (state) throws(KeyhaulError) in
      if let failure = state.failure { throw failure }
      do throws(Errno) {
        if let file = state.file.take() { try system.finalize(file, expectedByteCount: state.byteCount) }
      } catch {
        throw BackupInstaller(system: system).explain(
          error, path: ExtractionFolder.manifestName, needs: state.byteCount)
      }
      return state.result
    }
  }
}
