import KeyhaulKit

@testable import DeviceServer

/// A channel with scripted input that records its output.
final class ScriptedChannel: ByteChannel {
  private struct State {
    var input: ArraySlice<UInt8>
    var output: [UInt8] = []
    var isClosed = false
  }

  private let state: Locked<State>
  private let maximumReadCount: Int

  /// - Parameter maximumReadCount: The maximum number of bytes in a read, to split a stream.
  init(_ input: [UInt8] = [], maximumReadCount: Int = .max) {
    state = Locked(State(input: input[...]))
    self.maximumReadCount = max(1, maximumReadCount)
  }

  var output: [UInt8] { state.withLock { $0.output } }
  /// The number of input bytes that have not been read.
  var remainingCount: Int { state.withLock { $0.input.count } }

  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    let maximumCount = min(count, maximumReadCount)
    return state.withLock { state in
      guard !state.isClosed else { return [] }
      let bytes = Array(state.input.prefix(maximumCount))
      state.input = state.input.dropFirst(bytes.count)
      return bytes
    }
  }

  func write(_ bytes: [UInt8]) throws(WireError) { state.withLock { $0.output += bytes } }
  func close() { state.withLock { $0.isClosed = true } }
}
