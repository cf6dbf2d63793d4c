#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// A record of the C library's directory stream, as `readdir` lends it.
package enum DirectoryEntry {
  /// The bytes of the entry's name, without the NUL behind them.
  ///
  /// A record is as long as its name needs, and mostly shorter than `dirent`, whose name field has room for the longest.
  /// So the record is read where it stands and never as a whole `dirent`, which would take along what lies behind it.
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
