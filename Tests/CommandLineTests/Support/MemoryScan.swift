#if os(Linux)
  import Foundation
  import Glibc
  import KeyhaulKit

  /// Searches the writable memory of a process for byte strings. Only root and the process itself can read `/proc/PID/mem`.
  struct MemoryScan {
    /// A byte string with a name.
    struct Needle {
      let name: String
      let bytes: [UInt8]
    }

    /// The number of bytes read at a time, without the overlap.
    static let chunkSize = 1 << 20

    /// Returns how often each byte string occurs, by name. Byte strings that do not occur are left out.
    static func counts(of needles: [Needle], in process: Int32) throws -> [String: Int] {
      // Chunks overlap, so a byte string on the border of two chunks is found. A byte string in the overlap is counted
      // once, because it has the same address in both chunks.
      let overlap = needles.map(\.bytes.count).max() ?? 0
      var addresses: [String: Set<UInt>] = [:]
      try forEachChunk(of: process, overlap: overlap) { address, chunk in
        for needle in needles {
          for offset in needle.bytes.withUnsafeBytes({ offsets(of: $0, in: chunk) }) {
            addresses[needle.name, default: []].insert(address + UInt(offset))
          }
        }
      }
      return addresses.mapValues(\.count)
    }

    /// Reads a process's writable memory in chunks into one buffer, and skips the parts that cannot be read.
    ///
    /// - Parameter overlap: The number of bytes that each chunk has after `chunkSize`. The next chunk starts with them.
    static func forEachChunk(
      of process: Int32, overlap: Int, _ body: (_ address: UInt, _ chunk: UnsafeRawBufferPointer) -> Void
    ) throws {
      let memory = open("/proc/\(process)/mem", O_RDONLY)
      guard memory >= 0 else { throw CocoaError(.fileReadNoPermission) }
      defer { close(memory) }
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkSize + overlap, alignment: 4096)
      defer {
        wipe(buffer)
        buffer.deallocate()
      }
      for region in try regions(of: process) {
        for address in stride(from: region.lowerBound, to: region.upperBound, by: chunkSize) {
          let byteCount = min(UInt(chunkSize + overlap), region.upperBound - address)
          let readCount = pread(memory, buffer.baseAddress, Int(byteCount), off_t(address))
          if readCount > 0 { body(address, UnsafeRawBufferPointer(rebasing: buffer[..<readCount])) }
        }
      }
    }

    /// Returns the address ranges of a process's writable memory.
    static func regions(of process: Int32) throws -> [Range<UInt>] {
      // Files in /proc report size 0, so functions that rely on the size would read only the beginning.
      guard let file = FileHandle(forReadingAtPath: "/proc/\(process)/maps") else {
        throw CocoaError(.fileReadNoPermission)
      }
      let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
      return text.split(separator: "\n").compactMap { line in
        let fields = line.split(separator: " ")
        guard fields.count > 1, fields[1].hasPrefix("rw"), !line.hasSuffix("[vvar]") else { return nil }
        let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        return bounds.count == 2 && bounds[0] < bounds[1] ? bounds[0]..<bounds[1] : nil
      }
    }

    /// Returns the offsets at which a byte string occurs in a buffer.
    static func offsets(of needle: UnsafeRawBufferPointer, in bytes: UnsafeRawBufferPointer) -> [Int] {
      guard let base = bytes.baseAddress, let start = needle.baseAddress, let first = needle.first,
        bytes.count >= needle.count
      else { return [] }
      var offsets: [Int] = []
      var offset = 0
      while offset + needle.count <= bytes.count,
        let hit = memchr(base + offset, Int32(first), bytes.count - needle.count + 1 - offset)
      {
        offset = base.distance(to: UnsafeRawPointer(hit))
        if memcmp(base + offset, start, needle.count) == 0 { offsets.append(offset) }
        offset += 1
      }
      return offsets
    }
  }
#endif
