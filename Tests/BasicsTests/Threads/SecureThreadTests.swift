#if os(Linux)
  import Foundation
  import Testing

  @testable import Basics

  @Suite("Secure threads")
  struct SecureThreadTests {
    /// Writes bytes to the stack, six frames of one kilobyte below the caller's, and returns their address.
    private static func bury(_ bytes: [UInt8], depth: Int = 6, told: (Int) -> Void) {
      withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 16) { frame in
        guard depth == 0 else { return bury(bytes, depth: depth - 1, told: told) }
        frame.copyBytes(from: bytes)
        told(Int(bitPattern: frame.baseAddress))
      }
    }

    /// Returns the bytes at an address, read through the system, or `nil` if the stack is no longer mapped.
    private static func memory(at address: Int, count: Int) throws -> Data? {
      let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/mem"))
      try memory.seek(toOffset: UInt64(address))
      return try? memory.read(upToCount: count)
    }

    @Test("An ended thread leaves nothing of its work on the stack that the system reuses")
    func stack() throws {
      let bytes = (0..<64).map { UInt8($0 &* 3 &+ 50) }
      let seen = Locked<(address: Int, bytes: Data?)>((0, nil))
      let ended = DispatchSemaphore(value: 0)
      let left = Locked<Data?>(nil)
      let isRunning = SecureThread.start {
        Self.bury(bytes) { address in
          seen.withLock { $0 = (address, try? Self.memory(at: address, count: bytes.count)) }
        }
      } ended: {
        left.withLock { $0 = try? Self.memory(at: seen.withLock { $0.address }, count: bytes.count) }
        ended.signal()
      }
      try #require(isRunning)
      ended.wait()
      // The thread was waiting when both were read, so its stack was still mapped.
      let before: Data? = seen.withLock { $0.bytes }
      #expect(before == Data(bytes))
      let read: Data? = left.withLock { $0 }
      let rest = try #require(read)
      #expect(rest.count == bytes.count && zip(rest, bytes).count(where: ==) < 8)
    }
  }
#endif
