import Basics
import Dispatch
import KeychainFormats
import Synchronization
import SystemPackage

/// Hands out the entries of a plan to workers, and puts what became of them into the manifest in the plan's order,
/// whichever of them is done first.
///
/// What is in the manifest is on the disk: the disk is asked to keep many files at once, and those are entered then.
/// No more than a few thousand entries are ahead of the first that is not done, so that little is kept in memory.
final class ExtractionJournal: Sendable {
  private static let maximumAheadCount = 2_048
  /// So many the disk is asked to keep together, and fewer where they take long.
  private static let batchCount = 512
  private static let batchPatience = Duration.milliseconds(500)
  private static let reportInterval = DispatchTimeInterval.milliseconds(50)

  private typealias Done = (record: ExtractedRecord, wasKept: Bool)

  private struct State: ~Copyable {
    var file: OwnedFileDescriptor?
    var byteCount: Int64
    var handedOut = 0
    var written = 0
    /// Done, but perhaps in the system's memory alone.
    var unsettled: [Int: Done] = [:]
    /// On the disk, and waiting for those before them.
    var waiting: [Int: Done] = [:]
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
  private let done = Atomic<Int64>(0)
  /// How many entries may still be handed out. It starts at none: libdispatch ends the process where a semaphore goes
  /// with less than it started with, as it does when the work is stopped.
  private let room = DispatchSemaphore(value: 0)
  /// Signaled where a batch is full.
  private let batches = DispatchSemaphore(value: 0)
  private let folder: ExtractionFolder

  /// - Parameters:
  ///   - file: New and empty; the manifest goes there.
  ///   - folder: What is entered lies in it.
  ///   - header: Its first line.
  ///   - count: How many entries there are.
  init(
    _ file: consuming OwnedFileDescriptor, in folder: ExtractionFolder, header: JSONValue, count: Int
  ) throws(Errno) {
    let bytes = Array((header.compactText() + "\n").utf8)
    self.folder = folder
    system = folder.system
    try system.writeAll(bytes, to: file.raw)
    self.count = count
    state = Locked(State(file, byteCount: bytes.count))
    for _ in 0..<Self.maximumAheadCount { room.signal() }
  }

  /// Returns the number of the next entry to extract; `nil` if no entry is left, or the extraction was stopped.
  func next() -> Int? {
    room.wait()
    let number = state.withLock { state -> Int? in
      guard !hasStopped, state.handedOut < count else { return nil }
      state.handedOut += 1
      return state.handedOut - 1
    }
    if number == nil { room.signal() }
    return number
  }

  /// Enters what became of an entry that was handed out.
  func enter(_ record: ExtractedRecord, wasKept: Bool, at number: Int) {
    let isFull = state.withLock { state in
      state.unsettled[number] = (record, wasKept)
      return state.unsettled.count == Self.batchCount
    }
    if isFull { batches.signal() }
  }

  /// Settles what is entered, batch by batch, until `isLast` says that nothing more comes. One thread's work.
  ///
  /// - Parameter report: Called several times a second, except while a batch is being synced to disk.
  func settle(until isLast: () -> Bool, reporting report: () -> Void) {
    var lastBatch = ContinuousClock.now
    while true {
      // Asked first: what is entered before the answer is in the last batch.
      let ends = isLast()
      let isFull = !ends && batches.wait(timeout: .now() + Self.reportInterval) == .success
      report()
      if ends || isFull || lastBatch.duration(to: .now) >= Self.batchPatience {
        settleBatch()
        lastBatch = .now
      }
      if ends { return }
    }
  }

  /// Settles a batch if one is full, on the thread that enters it.
  func settleFullBatch() {
    if batches.wait(timeout: .now()) == .success { settleBatch() }
  }

  /// Tells whoever settles that it may be the last time.
  func wake() { batches.signal() }

  /// Has the disk keep what was entered by now, and puts it into the manifest.
  private func settleBatch() {
    let batch = state.withLock { state in
      let batch = state.unsettled
      state.unsettled = [:]
      return batch
    }
    guard !batch.isEmpty else { return }
    do throws(Errno) {
      try system.syncFileSystem(of: folder.root.descriptor)
    } catch {
      return stop(folder.explain(error))
    }
    let ended = state.withLock { state in write(batch, &state) }
    for _ in 0..<ended { room.signal() }
  }

  /// - Returns: How many entries have ended.
  private func write(_ batch: [Int: Done], _ state: inout State) -> Int {
    state.waiting.merge(batch) { $1 }
    var lines: [UInt8] = []
    let first = state.written
    while let (record, wasKept) = state.waiting.removeValue(forKey: state.written) {
      lines += Array((record.line.compactText() + "\n").utf8)
      state.result.add(record, wasKept: wasKept)
      state.written += 1
    }
    do throws(Errno) {
      switch state.file {
      case .some(let file): try system.writeAll(lines, to: file.raw)
      case .none: break
      }
      state.byteCount += Int64(lines.count)
    } catch {
      fail(
        BackupPlacement(system: system).explain(error, path: ExtractionFolder.manifestName, needs: Int64(lines.count)),
        &state)
    }
    return state.written - first
  }

  /// Tells of bytes that were read.
  func add(_ byteCount: Int64) { done.wrappingAdd(byteCount, ordering: .relaxed) }

  var doneByteCount: Int64 { done.load(ordering: .relaxed) }

  var hasStopped: Bool { isStopped.load(ordering: .acquiring) }

  /// Ends the work at what cannot be gone on with; the first reason counts.
  func stop(_ failure: KeyhaulError) {
    state.withLock { fail(failure, &$0) }
    // Whoever waits for room gets to see it.
    room.signal()
  }

  private func fail(_ failure: KeyhaulError, _ state: inout State) {
    if state.failure == nil { state.failure = failure }
    isStopped.store(true, ordering: .releasing)
  }

  /// Closes the manifest, which is on the disk then.
  ///
  /// - Throws: What the work was stopped with.
  func finish() throws(KeyhaulError) -> ExtractedFiles {
    try state.withLock { (state) throws(KeyhaulError) in
      if let failure = state.failure { throw failure }
      do throws(Errno) {
        if let file = state.file.take() { try system.finalize(file, expectedByteCount: state.byteCount) }
      } catch {
        throw BackupPlacement(system: system).explain(
          error, path: ExtractionFolder.manifestName, needs: state.byteCount)
      }
      return state.result
    }
  }
}
