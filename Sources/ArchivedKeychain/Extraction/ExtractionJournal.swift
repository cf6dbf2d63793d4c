import BackupArchive
import Dispatch
import Files
import KeychainFormats
import Synchronization
import SystemPackage

/// Hands out the entries of a plan to workers, and puts what became of them into the manifest in the plan's order,
/// whichever of them is done first.
///
/// No more than a few hundred entries are ahead of the first that is not done, so that little is kept in memory.
final class ExtractionJournal: Sendable {
  private static let maximumAheadCount = 256

  private struct State: ~Copyable {
    var file: Descriptor?
    var byteCount: Int64
    var handedOut = 0
    var written = 0
    /// Done, and waiting for those before them.
    var waiting: [Int: (record: ExtractedRecord, wasKept: Bool)] = [:]
    var result = ExtractedFiles()
    var failure: BackupArchiveError?

    init(_ file: consuming Descriptor, byteCount: Int) {
      self.file = consume file
      self.byteCount = Int64(byteCount)
    }
  }

  private let count: Int
  private let system: FileSystem
  private let state: Mutex<State>
  private let isStopped = Atomic<Bool>(false)
  private let done = Atomic<Int64>(0)
  /// How many entries may still be handed out. It starts at none: libdispatch ends the process where a semaphore goes
  /// with less than it started with, as it does when the work is stopped.
  private let room = DispatchSemaphore(value: 0)

  /// - Parameters:
  ///   - file: New and empty; the manifest goes there.
  ///   - header: Its first line.
  ///   - count: How many entries there are.
  init(
    _ file: consuming Descriptor, header: JSONValue, count: Int, system: FileSystem
  ) throws(Errno) {
    let bytes = Array((header.compactText() + "\n").utf8)
    try system.writeAll(bytes, to: file.raw)
    self.count = count
    self.system = system
    state = Mutex(State(file, byteCount: bytes.count))
    for _ in 0..<Self.maximumAheadCount { room.signal() }
  }

  /// The next entry to be worked on; `nil` where there is none, or the work was stopped.
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
    let ended = state.withLock { state -> Int in
      state.waiting[number] = (record, wasKept)
      var lines: [UInt8] = []
      var ended = 0
      while let (record, wasKept) = state.waiting.removeValue(forKey: state.written) {
        lines += Array((record.line.compactText() + "\n").utf8)
        state.result.add(record, wasKept: wasKept)
        state.written += 1
        ended += 1
      }
      do throws(Errno) {
        switch state.file {
        case .some(let file): try system.writeAll(lines, to: file.raw)
        case .none: break
        }
        state.byteCount += Int64(lines.count)
      } catch {
        fail(BackupPlacement(system: system).explain(error, path: ExtractionFolder.manifestName, needs: 0), &state)
      }
      return ended
    }
    for _ in 0..<ended { room.signal() }
  }

  /// Tells of bytes that were read.
  func add(_ byteCount: Int64) { done.wrappingAdd(byteCount, ordering: .relaxed) }

  var doneByteCount: Int64 { done.load(ordering: .relaxed) }

  var hasStopped: Bool { isStopped.load(ordering: .acquiring) }

  /// Ends the work at what cannot be gone on with; the first reason counts.
  func stop(_ failure: BackupArchiveError) {
    state.withLock { fail(failure, &$0) }
    // Whoever waits for room gets to see it.
    room.signal()
  }

  private func fail(_ failure: BackupArchiveError, _ state: inout State) {
    if state.failure == nil { state.failure = failure }
    isStopped.store(true, ordering: .releasing)
  }

  /// Closes the manifest, which is on the disk then.
  ///
  /// - Throws: What the work was stopped with.
  func finish() throws(BackupArchiveError) -> ExtractedFiles {
    try state.withLock { (state) throws(BackupArchiveError) in
      if let failure = state.failure { throw failure }
      do throws(Errno) {
        if let file = state.file.take() { try system.seal(file, byteCount: state.byteCount) }
      } catch {
        throw BackupPlacement(system: system).explain(
          error, path: ExtractionFolder.manifestName, needs: state.byteCount)
      }
      return state.result
    }
  }
}
