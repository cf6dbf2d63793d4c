#if os(Linux)
  import Foundation
  import Testing

  @testable import Basics

  @Suite("Secure threads")
  struct SecureThreadTests {
    /// Writes bytes to the stack, six frames of one kilobyte below the caller's, and returns their address.
    private static func writeDeep(_ bytes: [UInt8], depth: Int = 6, reportAddress: (Int) -> Void) {
      withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 16) { frame in
        guard depth == 0 else { return writeDeep(bytes, depth: depth - 1, reportAddress: reportAddress) }
        frame.copyBytes(from: bytes)
        reportAddress(Int(bitPattern: frame.baseAddress))
      }
    }

    /// Returns the bytes at an address, read through the system, or `nil` if the stack is no longer mapped.
    private static func memory(at address: Int, count: Int) throws -> Data? {
      let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/mem"))
      try memory.seek(toOffset: UInt64(address))
      return try? memory.read(upToCount: count)
    }

    @Test("A thread overwrites its stack when it ends, because the system reuses it")
    func stack() throws {
      let bytes = (0..<64).map { UInt8($0 &* 3 &+ 50) }
      let bytesWhileRunning = Locked<(address: Int, bytes: Data?)>((0, nil))
      let ended = DispatchSemaphore(value: 0)
      let bytesAfterEnd = Locked<Data?>(nil)
      let isRunning = SecureThread.start {
        Self.writeDeep(bytes) { address in
          bytesWhileRunning.withLock { $0 = (address, try? Self.memory(at: address, count: bytes.count)) }
        }
      } ended: {
        bytesAfterEnd.withLock {
          $0 = try? Self.memory(at: bytesWhileRunning.withLock { $0.address }, count: bytes.count)
        }
        ended.signal()
      }
      try #require(isRunning)
      ended.wait()
      // The thread read its own stack both times, so the stack was still mapped.
      let before: Data? = bytesWhileRunning.withLock { $0.bytes }
      #expect(before == Data(bytes))
      let after: Data? = bytesAfterEnd.withLock { $0 }
      let remaining = try #require(after)
      // Some bytes may be equal by chance.
      #expect(remaining.count == bytes.count && zip(remaining, bytes).count(where: ==) < 8)
    }
  }
#endif
