#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// Reads directory entries as `readdir` returns them.
package enum DirectoryEntry {
  /// Returns the bytes of the entry's name, without the NUL at its end.
  ///
  /// A record is only as long as its name requires, usually shorter than `dirent`, whose name field fits the longest
  /// name. It is therefore read in place: copying a complete `dirent` would also read the memory after it.
  /// Source: readdir(3), "the size of the array".
  package static func name(of entry: UnsafePointer<dirent>) -> [UInt8] {
    guard let lengthOffset = MemoryLayout<dirent>.offset(of: \.d_reclen),
      let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name)
    else { return [] }
    let record = UnsafeRawPointer(entry)
    let length = Int(record.loadUnaligned(fromByteOffset: lengthOffset, as: UInt16.self))
    guard length > nameOffset else { return [] }
    return Array(UnsafeRawBufferPointer(start: record + nameOffset, count: length - nameOffset).prefix { $0 != 0 })
  }
}
