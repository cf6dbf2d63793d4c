package import SystemPackage

#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// What stands at a place of the file system.
package struct FileStatus: Sendable {
  package enum Kind: Sendable {
    case file, directory, link, pipe
    /// A device or a socket.
    case other
  }

  package let kind: Kind
  package let byteCount: Int64
  /// Who may do what, without the bits of its kind.
  package let permissions: UInt32
  package let owner: UInt32
  package let group: UInt32
  private let device: DeviceID
  private let number: Inode
  /// When its bytes and when its status last changed, in seconds and nanoseconds.
  private let changes: [Int]

  /// The time of the last change to the file's bytes, in seconds since 1970.
  package var lastChange: Double { Double(changes[0]) + Double(changes[1]) / 1e9 }

  /// Whether whoever runs this program owns it.
  package var isOwn: Bool { owner == SystemCalls.user }

  /// Whether both are one, by whatever names.
  package func isSame(as other: FileStatus) -> Bool { device == other.device && number == other.number }

  /// Whether it is the same file and the system knows of no change of it since.
  package func isUnchanged(since earlier: FileStatus) -> Bool {
    isSame(as: earlier) && byteCount == earlier.byteCount && changes == earlier.changes
  }

  /// Whether it is the same file and its bytes have not changed since; who may use it may have.
  package func hasUnchangedBytes(since earlier: FileStatus) -> Bool {
    isSame(as: earlier) && byteCount == earlier.byteCount && changes.prefix(2) == earlier.changes.prefix(2)
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
    number = status.inode
    changes = SystemCalls.changes(in: status)
  }
}

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

extension FileSystem {
  /// A name as the system keeps it: bytes with a NUL at the end, not always UTF-8.
  package typealias Name = [CChar]
}

extension String {
  package var systemName: FileSystem.Name { Array(utf8CString) }
}

extension FileSystem.Name {
  private var bytes: [UInt8] { dropLast().map { UInt8(bitPattern: $0) } }

  /// `nil` for bytes that are not UTF-8.
  package var validText: String? { String(validating: bytes, as: UTF8.self) }

  /// For people and for comparison: bytes that are not UTF-8 are replaced.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// An open file or directory, closed when its owner lets go of it.
package struct Descriptor: ~Copyable, Sendable {
  /// For calls while the owner keeps it open.
  package let raw: FileDescriptor

  init(_ raw: FileDescriptor) { self.raw = raw }

  /// Closes now and reports what only closing can tell, such as a write that a network file system refused late.
  package consuming func close(_ system: FileSystem) throws(Errno) {
    let raw = self.raw
    discard self
    var reason: Errno?
    do { try raw.close() } catch { reason = error as? Errno ?? .ioError }
    if let fault = system.fault(in: .close) { throw fault }
    // It is closed all the same, and its number may be another's by now.
    if let reason, reason != .interrupted { throw reason }
  }

  deinit { try? raw.close() }
}
