import Foundation
import Testing

@testable import ParallelWork

@Suite("Work beside its owner")
struct SideWorkTests {
  @Test("is done on a thread of its own while its owner does something else")
  func beside() {
    let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let work = SideWork { _ in
      begun.signal()
      goOn.wait()
    }
    begun.wait()
    goOn.signal()
    withExtendedLifetime(work) {}
  }

  @Test("ends where its owner does not want it any more, and its owner waits for that")
  func unwanted() {
    let ended = OnceEach<Int, Int>(capacity: 1)
    do {
      let begun = DispatchSemaphore(value: 0)
      let work = SideWork { isWanted in
        begun.signal()
        while isWanted() { Thread.sleep(forTimeInterval: 0.001) }
        _ = ended.value(for: 1) { 1 }
      }
      begun.wait()
      withExtendedLifetime(work) {}
    }
    #expect(ended.count == 1)
  }

  #if os(Linux)
    /// Puts bytes on the stack, `depth` frames of a kilobyte below the caller's, and tells where they lie.
    private static func bury(_ bytes: [UInt8], depth: Int, told: (Int) -> Void) {
      withUnsafeTemporaryAllocation(byteCount: 1_024, alignment: 16) { frame in
        guard depth == 0 else { return bury(bytes, depth: depth - 1, told: told) }
        frame.copyBytes(from: bytes)
        told(Int(bitPattern: frame.baseAddress))
      }
    }

    @Test("leaves nothing on its stack, which the system keeps for the next thread")
    func stack() throws {
      let address = OnceEach<Int, Int>(capacity: 1)
      let bytes = (0..<64).map { UInt8($0 &* 3 &+ 50) }
      do {
        let work = SideWork { _ in
          Self.bury(bytes, depth: 6) { place in _ = address.value(for: 1) { place } }
        }
        while address.count == 0 { Thread.sleep(forTimeInterval: 0.001) }
        withExtendedLifetime(work) {}
      }
      // Read through the system, as the memory may be gone by now.
      let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/mem"))
      try memory.seek(toOffset: UInt64(address.value(for: 1) { 0 }))
      let left = (try? memory.read(upToCount: bytes.count)) ?? Data()
      #expect(left != Data(bytes))
    }
  #endif
}
