import SystemPackage

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
