#if os(Linux)
  import Foundation
  import Testing

  @testable import Basics

  @Suite("A thread for work that secrets pass through")
  struct WorkThreadTests {
    /// Puts bytes on the stack, six frames of a kilobyte below the caller's, and tells where they lie.
    private static func bury(_ bytes: [UInt8], depth: Int = 6, told: (Int) -> Void) {
      withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 16) { frame in
        guard depth == 0 else { return bury(bytes, depth: depth - 1, told: told) }
        frame.copyBytes(from: bytes)
        told(Int(bitPattern: frame.baseAddress))
      }
    }

    /// Returns the bytes at an address, read through the system; `nil` if the stack is no longer mapped.
    private static func memory(at address: Int, count: Int) throws -> Data? {
      let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/mem"))
      try memory.seek(toOffset: UInt64(address))
      return try? memory.read(upToCount: count)
    }

    @Test("has nothing of the work on its stack when that has ended, which the system keeps for the next thread")
    func stack() throws {
      let bytes = (0..<64).map { UInt8($0 &* 3 &+ 50) }
      let seen = Locked<(address: Int, bytes: Data?)>((0, nil))
      let ended = DispatchSemaphore(value: 0)
      let left = Locked<Data?>(nil)
      let isRunning = WorkThread.start {
        Self.bury(bytes) { address in
          seen.withLock { $0 = (address, try? Self.memory(at: address, count: bytes.count)) }
        }
      } ended: {
        left.withLock { $0 = try? Self.memory(at: seen.withLock { $0.address }, count: bytes.count) }
        ended.signal()
      }
      try #require(isRunning)
      ended.wait()
      // The thread stood when both were read, so that its stack did too.
      let before: Data? = seen.withLock { $0.bytes }
      #expect(before == Data(bytes))
      let read: Data? = left.withLock { $0 }
      let rest = try #require(read)
      #expect(rest.count == bytes.count && zip(rest, bytes).count(where: ==) < 8)
    }
  }
#endif
