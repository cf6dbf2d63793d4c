import Basics
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Names in directory records")
struct DirectoryEntryTests {
  /// Calls a closure with the shortest possible record for a name.
  ///
  /// The record ends with its page, and the next page is not readable. Reading past the record therefore crashes.
  ///
  /// - Returns: The result of the closure, or `nil` if the system provides no such memory.
  private static func withRecord(
    of name: [UInt8], isTerminated: Bool = true, _ body: (UnsafePointer<dirent>) -> [UInt8]
  ) -> [UInt8]? {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    guard let lengthOffset = MemoryLayout<dirent>.offset(of: \.d_reclen),
      let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name),
      let memory = mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0), memory != MAP_FAILED
    else { return nil }
    defer { munmap(memory, 2 * page) }
    guard mprotect(memory + page, page, PROT_NONE) == 0 else { return nil }
    let neededCount = nameOffset + name.count + (isTerminated ? 1 : 0)
    // The system pads each record to a multiple of eight bytes.
    let length = isTerminated ? (neededCount + 7) / 8 * 8 : neededCount
    let record = memory + page - length
    record.storeBytes(of: UInt16(length), toByteOffset: lengthOffset, as: UInt16.self)
    (record + nameOffset).copyMemory(from: name, byteCount: name.count)
    return body(UnsafePointer(record.assumingMemoryBound(to: dirent.self)))
  }

  @Test("A name of any length is read without any byte after its record", arguments: [1, 2, 5, 254, 255])
  func lengths(count: Int) async {
    // A separate process, because reading one byte too many crashes it.
    await #expect(processExitsWith: .exitCode(0)) { [count = count as Int] in
      let name = [UInt8](repeating: 0x61, count: count)
      exit(Self.withRecord(of: name) { DirectoryEntry.name(of: $0) } == name ? 0 : 1)
    }
  }

  @Test("A name without a terminator ends with its record")
  func unterminated() async {
    await #expect(processExitsWith: .exitCode(0)) {
      let name: [UInt8] = [0x61, 0xFF, 0x62, 0x63, 0x64]
      exit(Self.withRecord(of: name, isTerminated: false) { DirectoryEntry.name(of: $0) } == name ? 0 : 1)
    }
  }

  @Test("The complete name of a file is read from its directory", arguments: [1, 254, 255])
  func directory(count: Int) throws {
    let directory = try TemporaryDirectory()
    let name = String(repeating: "n", count: count)
    try directory.write([], to: name)
    let stream = try #require(opendir(directory.path))
    defer { closedir(stream) }
    var names: Set<String> = []
    while let entry = readdir(stream) { names.insert(String(decoding: DirectoryEntry.name(of: entry), as: UTF8.self)) }
    #expect(names == [".", "..", name])
  }
}
