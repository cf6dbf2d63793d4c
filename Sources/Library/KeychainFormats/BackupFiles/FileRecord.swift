import Basics

/// What a backup's manifest says about one file: the `MBFile` object that its row holds as a keyed archive.
///
/// Source: iphone_backup_decrypt and dissect.target, which read it; backups of iOS 10 and later, which hold it.
public struct FileRecord: Sendable, Hashable {
  /// Keys of its archive's dictionaries, each for itself; a device writes sixteen.
  public static let maximumKeyCount = 64

  /// The path inside the domain, with `/` between its parts and none in front; empty for the domain's own directory.
  public var relativePath: String
  /// Where a symbolic link points. It comes from the archive and may name any place.
  public var target: String?
  /// The bytes of `relativePath` if they are not UTF-8; its text spells those that do not fit `%F5`.
  package var undecodedPath: [UInt8]?
  /// The bytes of `target` if they are not UTF-8.
  package var undecodedTarget: [UInt8]?
  /// SHA-1 of the stored bytes, twenty bytes.
  public var digest: [UInt8]?
  /// The file's own key, in an encrypted backup.
  public var encryptionKey: ClassWrappedKey?
  /// `st_mode` with the type bits.
  public var mode: UInt32
  /// The number of the inode on the device that made the backup (`st_ino`).
  public var inode: UInt64
  /// The owner's number on that device (`st_uid`); 501 is `mobile`.
  public var userID: Int64
  /// The group's number (`st_gid`).
  public var groupID: Int64
  /// Unix seconds, as are the two others.
  public var lastModified: Int64
  /// The last change of the inode (`st_ctime`), in Unix seconds.
  public var lastStatusChange: Int64
  /// The time the file was made (`st_birthtime`), in Unix seconds.
  public var birth: Int64
  /// What the device recorded as the plain length. Not always right: the padding says the real one.
  public var size: Int64
  /// The class whose key wraps the file's own; a backup without a password records it too, and wraps nothing.
  public var protectionClass: KeyClass
  /// A binary property list of names and data, as it is stored.
  public var extendedAttributes: [UInt8]?
  /// `st_flags`.
  public var flags: Int64

  /// Creates a record of a file that is about to be written. 501 is the user `mobile`, which owns an app's files.
  public init(
    relativePath: String, target: String? = nil, digest: [UInt8]? = nil, encryptionKey: ClassWrappedKey? = nil,
    mode: UInt32, inode: UInt64 = 0, userID: Int64 = 501, groupID: Int64 = 501, lastModified: Int64 = 0,
    lastStatusChange: Int64 = 0, birth: Int64 = 0, size: Int64 = 0, protectionClass: KeyClass,
    extendedAttributes: [UInt8]? = nil, flags: Int64 = 0
  ) {
    self.relativePath = relativePath
    self.target = target
    self.digest = digest
    self.encryptionKey = encryptionKey
    self.mode = mode
    self.inode = inode
    self.userID = userID
    self.groupID = groupID
    self.lastModified = lastModified
    self.lastStatusChange = lastStatusChange
    self.birth = birth
    self.size = size
    self.protectionClass = protectionClass
    self.extendedAttributes = extendedAttributes
    self.flags = flags
  }

  /// What a mode's type bits say the file is.
  public enum FileType: Sendable, Hashable {
    /// A file with contents (`S_IFREG`).
    case regular
    /// A directory (`S_IFDIR`), which has no payload.
    case directory
    /// A symbolic link (`S_IFLNK`), whose `target` is in the record.
    case symbolicLink
    /// Other type bits: a device, a socket, a pipe, or none.
    case other
  }

  /// The type that the bits under 0xF000 of `mode` give.
  public var fileType: FileType {
    switch mode & 0xF000 {
    case 0x8000: .regular
    case 0x4000: .directory
    case 0xA000: .symbolicLink
    default: .other
    }
  }
}

extension FileRecord {
  /// Whether its path or its target is not UTF-8.
  package var hasUndecodedNames: Bool { undecodedPath != nil || undecodedTarget != nil }

  /// Whether something has to be stored for the file: all but an empty one, of which nothing can be lost.
  package var needsPayload: Bool { size != 0 }
}
