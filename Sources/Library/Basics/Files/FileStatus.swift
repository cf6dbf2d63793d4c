package import SystemPackage

#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// The status of a file system entry.
package struct FileStatus: Sendable {
  package enum Kind: Sendable {
    case file, directory, link, pipe
    /// A device or a socket.
    case other
  }

  package let kind: Kind
  package let byteCount: Int64
  /// The permission bits, without the bits for the kind of entry.
  package let permissions: UInt32
  package let owner: UInt32
  package let group: UInt32
  private let device: DeviceID
  private let inode: Inode
  /// The times of the last change: the content's seconds and nanoseconds, then the status's.
  private let changeTimes: [Int]

  /// The time of the last change to the file's bytes, in seconds since 1970.
  package var lastChange: Double { Double(changeTimes[0]) + Double(changeTimes[1]) / 1e9 }

  /// Whether the entry belongs to the user who runs this process.
  package var belongsToCurrentUser: Bool { owner == SystemCalls.user }

  /// Whether the entry belongs to this user or to root.
  var belongsToTrustedUser: Bool { belongsToCurrentUser || owner == 0 }

  /// Returns whether both are the same file, possibly under different names.
  package func isSame(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }

  /// Returns whether this is the same file and the system has recorded no change since.
  package func isUnchanged(since earlier: FileStatus) -> Bool {
    isSame(as: earlier) && byteCount == earlier.byteCount && changeTimes == earlier.changeTimes
  }

  /// Returns whether this is the same file with unchanged content; its permissions may have changed.
  package func hasUnchangedBytes(since earlier: FileStatus) -> Bool {
    isSame(as: earlier) && byteCount == earlier.byteCount && changeTimes.prefix(2) == earlier.changeTimes.prefix(2)
  }

  init(_ status: Stat) {
    kind =
      switch status.type {
      case .regular: .file
      case .directory: .directory
      case .symbolicLink: .link
      case .fifo: .pipe
      default: .other
      }
    byteCount = status.size
    permissions = UInt32(status.permissions.rawValue) & 0o7777
    owner = status.userID.rawValue
    group = status.groupID.rawValue
    device = status.deviceID
    inode = status.inode
    changeTimes = SystemCalls.changeTimes(in: status)
  }
}

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

extension FileSystem {
  /// A file name as the system stores it: bytes with a NUL at the end, not always UTF-8.
  package typealias Name = [CChar]
}

extension String {
  package var systemName: FileSystem.Name { Array(utf8CString) }
}

extension FileSystem.Name {
  private var bytes: [UInt8] { dropLast().map { UInt8(bitPattern: $0) } }

  /// The name as text, or `nil` if it is not UTF-8.
  package var validText: String? { String(validating: bytes, as: UTF8.self) }

  /// The name for display and comparison; bytes that are not UTF-8 are replaced.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// An open file or directory that is closed when the value is destroyed.
package struct OwnedFileDescriptor: ~Copyable, Sendable {
  /// The descriptor, valid only while its owner exists.
  package let raw: FileDescriptor

  init(_ raw: FileDescriptor) { self.raw = raw }

  /// Closes the file and reports errors that only closing reveals, such as a write that a network file system refused
  /// late.
  package consuming func close(_ system: FileSystem) throws(Errno) {
    let raw = self.raw
    discard self
    var reason: Errno?
    do { try raw.close() } catch { reason = error as? Errno ?? .ioError }
    if let fault = system.fault(in: .close) { throw fault }
    // An interrupted call has also closed the file, and its descriptor may belong to another file by now.
    if let reason, reason != .interrupted { throw reason }
  }

  deinit { try? raw.close() }
}
