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

extension FileRecord {
  /// Reads the archive of a manifest's row. References may stand at any level, values may be bare or wrapped.
  ///
  /// - Throws: `.malformed` that names the field; `.overLimit` for more keys than `maximumKeyCount`; what reading the
  ///   property list throws. What no field leads to is not looked at.
  public init(archive bytes: [UInt8]) throws(FormatError) {
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> FileRecord in
      try FileRecord(KeyedRecord(buffer))
    }
  }

  private init(_ record: KeyedRecord) throws(FormatError) {
    guard let path = try record.name(.relativePath) else {
      throw FormatError(.fileRecord, .malformed, "it has no RelativePath")
    }
    let target = try record.name(.target)
    self.init(
      relativePath: path.text,
      target: target?.text,
      digest: try record.data(.digest),
      encryptionKey: try record.data(.encryptionKey).map(ClassWrappedKey.init(parsing:)),
      mode: try record.number(.mode) ?? 0,
      inode: try record.inode(),
      userID: try record.number(.userID) ?? 0,
      groupID: try record.number(.groupID) ?? 0,
      lastModified: try record.number(.lastModified) ?? 0,
      lastStatusChange: try record.number(.lastStatusChange) ?? 0,
      birth: try record.number(.birth) ?? 0,
      size: try record.number(.size) ?? 0,
      protectionClass: KeyClass(rawValue: try record.number(.protectionClass) ?? 0),
      extendedAttributes: try record.data(.extendedAttributes),
      flags: try record.number(.flags) ?? 0)
    (undecodedPath, undecodedTarget) = (path.undecoded, target?.undecoded)
    guard size >= 0 else { throw FormatError(.fileRecord, .malformed, "its Size is negative") }
  }

  /// The archive as a device writes it, with fields that have no value left out.
  ///
  /// - Throws: `.unencodable` for a path or a target that is not UTF-8; what writing the property list throws.
  public func archived() throws(FormatError) -> [UInt8] {
    guard !hasUndecodedNames else { throw FormatError(.fileRecord, .unencodable, "a name in it is not UTF-8") }
    var objects: [PropertyValue] = [.string("$null"), .null]
    func reference(_ object: PropertyValue) -> PropertyValue {
      objects.append(object)
      return .uid(UInt64(objects.count - 1))
    }
    var record = PropertyDictionary()
    record["$class"] = .null
    record["RelativePath"] = reference(.string(relativePath))
    if let target { record["Target"] = reference(.string(target)) }
    if let digest { record["Digest"] = reference(.data(digest)) }
    if let encryptionKey {
      let key = reference(.null)
      let dataClass = reference(Self.classDescription(["NSMutableData", "NSData", "NSObject"]))
      objects[objects.count - 2] = .dictionary(["$class": dataClass, "NS.data": .data(encryptionKey.serialized())])
      record["EncryptionKey"] = key
    }
    record["Mode"] = .integer(Int64(mode))
    record["InodeNumber"] = .integer(Int64(bitPattern: inode))
    record["UserID"] = .integer(userID)
    record["GroupID"] = .integer(groupID)
    record["LastModified"] = .integer(lastModified)
    record["LastStatusChange"] = .integer(lastStatusChange)
    record["Birth"] = .integer(birth)
    record["Size"] = .integer(size)
    record["ProtectionClass"] = .integer(Int64(protectionClass.rawValue))
    if let extendedAttributes { record["ExtendedAttributes"] = reference(.data(extendedAttributes)) }
    record["Flags"] = .integer(flags)
    record["$class"] = reference(Self.classDescription(["MBFile", "NSObject"]))
    objects[1] = .dictionary(record)
    return try BinaryPlist.encode(
      .dictionary([
        "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
        "$top": .dictionary(["root": .uid(1)]), "$objects": .array(objects),
      ]))
  }

  static func classDescription(_ names: [String]) -> PropertyValue {
    .dictionary(["$classname": .string(names[0]), "$classes": .array(names.map(PropertyValue.string))])
  }
}

extension FileRecord {
  /// The archive of a manifest's row with another key, another digest and another size. Everything else stays as it was written, also
  /// what this project does not know, and names that are not UTF-8.
  ///
  /// - Parameters:
  ///   - encryptionKey: `nil` takes the key away.
  ///   - digest: `nil` leaves the digest as it is.
  ///   - size: Of the plain file; `nil` leaves it as it is.
  ///   - archive: The archive of the row.
  /// - Throws: `.malformed` for what is no such archive; what reading and writing the property list throw.
  package static func replacing(
    encryptionKey: ClassWrappedKey?, digest: [UInt8]?, size: Int64? = nil, in archive: [UInt8]
  ) throws(FormatError) -> [UInt8] {
    try BinaryPlist.editing(archive, limits: .small) { (list) throws(FormatError) in
      try replace(encryptionKey, digest, size, in: &list)
    }
  }

  private static func replace(
    _ encryptionKey: ClassWrappedKey?, _ digest: [UInt8]?, _ size: Int64?, in list: inout PropertyValue
  ) throws(FormatError) {
    guard var root = list.dictionaryValue, var objects = root["$objects"]?.arrayValue,
      case .uid(let number)? = root["$top"]?.dictionaryValue?["root"],
      let index = Int(exactly: number), objects.indices.contains(index), var record = objects[index].dictionaryValue
    else { throw FormatError(.fileRecord, .malformed, "it has no root") }
    func refer(to object: PropertyValue) -> PropertyValue {
      objects.append(object)
      return .uid(UInt64(objects.count - 1))
    }
    // What the old key's reference stood for is no longer referred to.
    if case .uid(let old)? = record["EncryptionKey"], let place = Int(exactly: old), objects.indices.contains(place),
      place != 0, place != index
    {
      objects[place] = .string("$null")
    }
    record["EncryptionKey"] = nil
    if let size { record["Size"] = .integer(size) }
    if let digest { record["Digest"] = refer(to: .data(digest)) }
    if let encryptionKey {
      let dataClass = refer(to: classDescription(["NSMutableData", "NSData", "NSObject"]))
      record["EncryptionKey"] = refer(
        to: .dictionary(["$class": dataClass, "NS.data": .data(encryptionKey.serialized())]))
    }
    objects[index] = .dictionary(record)
    root["$objects"] = .array(objects)
    list = .dictionary(root)
  }
}
