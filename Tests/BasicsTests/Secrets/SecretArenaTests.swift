import Foundation
import Testing

@testable import Basics

@Suite("Memory for secrets", .serialized)
struct SecretArenaTests {
  /// All sizes up to 300 bytes, and sizes around the steps between the arena's slot sizes and page sizes.
  private static let counts =
    Array(0...300) + [319, 320, 321, 511, 512, 513, 4_095, 4_096, 4_097, 16_383, 16_384, 16_385, 65_536, 100_000]

  @Test("Allocated memory is zeroed, aligned to 16 bytes and exclusive, even if it is reused")
  func fresh() {
    let arena = SecretArena(lockLimit: 0)
    for _ in 0..<3 {
      var buffers: [UnsafeMutableRawBufferPointer] = []
      for count in Self.counts + Self.counts.reversed() {
        let buffer = arena.allocate(count)
        #expect(buffer.count == count && buffer.allSatisfy { $0 == 0 })
        #expect(UInt(bitPattern: buffer.baseAddress) % 16 == 0)
        buffer.initializeMemory(as: UInt8.self, repeating: 0xA5)
        buffers.append(buffer)
      }
      let ranges = buffers.map {
        UInt(bitPattern: $0.baseAddress)..<(UInt(bitPattern: $0.baseAddress) + UInt($0.count))
      }
      .sorted { $0.lowerBound < $1.lowerBound }
      #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound })
      for buffer in buffers { arena.release(buffer) }
    }
  }

  @Test("Released memory is reused: allocating the same secrets again a thousand times maps no more pages")
  func reused() {
    let arena = SecretArena(lockLimit: 0)
    func allocateAndRelease() { for count in Self.counts { arena.release(arena.allocate(count)) } }
    allocateAndRelease()
    let pageByteCount = arena.pageByteCounts.mapped
    for _ in 0..<1_000 { allocateAndRelease() }
    #expect(arena.pageByteCounts.mapped == pageByteCount)
  }

  @Test("Secrets share pages: 10,000 secrets of 100 bytes take little more than their bytes")
  func shared() {
    let arena = SecretArena(lockLimit: 0)
    let buffers = (0..<10_000).map { _ in arena.allocate(100) }
    // At most a quarter more.
    #expect(arena.pageByteCounts.mapped < 10_000 * 100 * 5 / 4)
    for buffer in buffers { arena.release(buffer) }
  }

  #if os(Linux)
    /// Returns the system's flags for the pages at an address: `lo` means locked, `dd` excluded from core dumps.
    private func flags(at buffer: UnsafeMutableRawBufferPointer) throws -> Set<Substring> {
      let address = UInt(bitPattern: buffer.baseAddress)
      var isAtAddress = false
      // The file reports size 0, so functions that rely on the size would read only the beginning.
      let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
      for line in String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self).split(separator: "\n") {
        if line.hasPrefix("VmFlags:"), isAtAddress { return Set(line.split(separator: " ")) }
        let bounds = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
        if bounds.count == 2 { isAtAddress = (bounds[0]..<bounds[1]).contains(address) }
      }
      return []
    }

    @Test("Memory is locked against swapping up to the limit, and all memory is excluded from core dumps")
    func locked() throws {
      // The shell's limit may be too low, and the address sanitizer disables mlock.
      let isSanitized = ProcessInfo.processInfo.environment["ASAN_OPTIONS"] != nil
      guard !isSanitized, SecretPages.lockLimit >= 4 * SecretPages.byteCount else { return }
      let arena = SecretArena(lockLimit: 2 * SecretPages.byteCount)
      var buffers: [UnsafeMutableRawBufferPointer] = []
      for _ in 0..<10 { buffers.append(arena.allocate(16_000)) }
      #expect(arena.pageByteCounts.locked == 2 * SecretPages.byteCount)
      #expect(arena.pageByteCounts.mapped > 2 * SecretPages.byteCount)
      #expect(try flags(at: buffers[0]).isSuperset(of: ["lo", "dd"]))
      let lastFlags = try flags(at: try #require(buffers.last))
      #expect(lastFlags.contains("dd") && !lastFlags.contains("lo"))
      for buffer in buffers { arena.release(buffer) }
    }

    @Test("An arena with a lock limit of zero locks no memory")
    func unlocked() {
      let arena = SecretArena(lockLimit: 0)
      let buffer = arena.allocate(10)
      #expect(arena.pageByteCounts.locked == 0 && buffer.count == 10)
      arena.release(buffer)
    }

    @Test("The pages of a large secret are returned to the system, and zeroed when they are reused")
    func large() throws {
      let arena = SecretArena(lockLimit: 0)
      let first = arena.allocate(1 << 22)
      first.initializeMemory(as: UInt8.self, repeating: 1)
      arena.release(first)
      let reused = arena.allocate(1 << 22)
      #expect(reused.baseAddress == first.baseAddress && reused.allSatisfy { $0 == 0 })
      arena.release(reused)
    }
  #endif
}
