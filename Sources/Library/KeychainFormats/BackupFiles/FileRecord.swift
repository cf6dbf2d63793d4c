import Basics

/// A file's record in a backup's manifest: the `MBFile` object that a row stores as a keyed archive.
///
/// Source: iphone_backup_decrypt and dissect.target, which read such records; backups of iOS 10 and later.
package struct FileRecord: Sendable, Hashable {
  /// The maximum number of keys of each dictionary in the archive; a device writes 16.
  package static let maximumKeyCount = 64

  /// The path inside the domain, with `/` between its parts but not at its start; empty for the domain's own directory.
  package var relativePath: String
  /// The target of a symbolic link. It comes from the backup and is not trusted.
  package var target: String?
  /// The bytes of `relativePath` if they are not UTF-8; the text then contains escapes such as `%F5`.
  package var undecodedPath: [UInt8]?
  /// The bytes of `target` if they are not UTF-8.
  package var undecodedTarget: [UInt8]?
  /// The SHA-1 of the stored bytes, 20 bytes.
  package var digest: [UInt8]?
  /// The file's own wrapped key, in an encrypted backup.
  package var encryptionKey: ClassWrappedKey?
  /// The `st_mode` with the type bits.
  package var mode: UInt32
  /// The inode number on the source device (`st_ino`).
  package var inode: UInt64
  /// The owner's user ID on the source device (`st_uid`); 501 is `mobile`.
  package var userID: Int64
  /// The group ID (`st_gid`).
  package var groupID: Int64
  /// The last change of the content (`st_mtime`), in Unix seconds.
  package var lastModified: Int64
  /// The last change of the inode (`st_ctime`), in Unix seconds.
  package var lastStatusChange: Int64
  /// The creation time (`st_birthtime`), in Unix seconds.
  package var birth: Int64
  /// The size that the device recorded for the decrypted file. It may be wrong; the padding shows the actual size.
  package var size: Int64
  /// The class whose key wraps the file's key. A backup without a password also records the class, but has no file keys.
  package var protectionClass: KeyClass
  /// A binary property list of names and data, as stored.
  package var extendedAttributes: [UInt8]?
  /// The file's flags (`st_flags`).
  package var flags: Int64

  /// Creates a record of a new file. 501 is the user `mobile`, which owns an app's files.
  package init(
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

  /// The type of a file according to its mode.
  package enum FileType: Sendable, Hashable {
    /// A file with contents (`S_IFREG`).
    case regular
    /// A directory (`S_IFDIR`), which has no payload.
    case directory
    /// A symbolic link (`S_IFLNK`), whose `target` is in the record.
    case symbolicLink
    /// Other type bits: a device, a socket, a pipe, or none.
    case other
  }

  /// The type bits of a mode and their values, as in stat(2).
  private enum TypeBits {
    static let mask: UInt32 = 0xF000
    static let regular: UInt32 = 0x8000
    static let directory: UInt32 = 0x4000
    static let symbolicLink: UInt32 = 0xA000
  }

  /// The type according to the type bits of `mode`.
  package var fileType: FileType {
    switch mode & TypeBits.mask {
    case TypeBits.regular: .regular
    case TypeBits.directory: .directory
    case TypeBits.symbolicLink: .symbolicLink
    default: .other
    }
  }
}

extension FileRecord {
  /// Whether the path or the target is not UTF-8.
  package var hasUndecodedNames: Bool { undecodedPath != nil || undecodedTarget != nil }

  /// Whether the backup has to store content for the file; an empty file needs none.
  package var needsPayload: Bool { size != 0 }
}

extension FileRecord {
  /// Reads the archive in a manifest's row. Each value may be stored in the record itself or behind references. Text and
  /// data may be wrapped in an object (`NS.string`, `NS.data`).
  ///
  /// - Throws: `.malformed` with the name of the field; `.overLimit` for more keys than `maximumKeyCount`; the errors
  ///   of reading a property list. Objects that no field refers to are not checked.
  package init(archive bytes: [UInt8]) throws(FormatError) {
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
    (undecodedPath, undecodedTarget) = (path.undecodedBytes, target?.undecodedBytes)
    guard size >= 0 else { throw FormatError(.fileRecord, .malformed, "its Size is negative") }
  }

  /// Returns the archive as a device writes it, without fields that have no value.
  ///
  /// - Throws: `.unencodable` if the path or the target is not UTF-8; the errors of writing a property list.
  package func archived() throws(FormatError) -> [UInt8] {
    guard !hasUndecodedNames else { throw FormatError(.fileRecord, .unencodable, "a name in it is not UTF-8") }
    var objects = ArchivedObjects(values: [.string("$null")])
    let root = objects.reserve()
    let members = members(addingTo: &objects)
    objects.values[root] = .dictionary(members)
    return try BinaryPlist.encode(
      .dictionary([
        "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
        "$top": .dictionary(["root": .uid(UInt64(root))]), "$objects": .array(objects.values),
      ]))
  }

  /// Returns the members of the archived record, in a device's order. Texts and data are separate objects.
  private func members(addingTo objects: inout ArchivedObjects) -> PropertyDictionary {
    // The class is the last object, but the first member.
    var members: PropertyDictionary = ["$class": .null]
    members["RelativePath"] = objects.append(.string(relativePath))
    if let target { members["Target"] = objects.append(.string(target)) }
    if let digest { members["Digest"] = objects.append(.data(digest)) }
    if let encryptionKey {
      // A device writes the key's object before the object of its class.
      let key = objects.reserve()
      let dataClass = objects.append(Self.mutableDataClass)
      objects.values[key] = Self.archived(encryptionKey, class: dataClass)
      members["EncryptionKey"] = .uid(UInt64(key))
    }
    members["Mode"] = .integer(Int64(mode))
    members["InodeNumber"] = .integer(Int64(bitPattern: inode))
    members["UserID"] = .integer(userID)
    members["GroupID"] = .integer(groupID)
    members["LastModified"] = .integer(lastModified)
    members["LastStatusChange"] = .integer(lastStatusChange)
    members["Birth"] = .integer(birth)
    members["Size"] = .integer(size)
    members["ProtectionClass"] = .integer(Int64(protectionClass.rawValue))
    if let extendedAttributes { members["ExtendedAttributes"] = objects.append(.data(extendedAttributes)) }
    members["Flags"] = .integer(flags)
    members["$class"] = objects.append(Self.classDescription(["MBFile", "NSObject"]))
    return members
  }

  private static let mutableDataClass = classDescription(["NSMutableData", "NSData", "NSObject"])

  private static func archived(_ key: ClassWrappedKey, class dataClass: PropertyValue) -> PropertyValue {
    .dictionary(["$class": dataClass, "NS.data": .data(key.serialized())])
  }

  private static func classDescription(_ names: [String]) -> PropertyValue {
    .dictionary(["$classname": .string(names[0]), "$classes": .array(names.map(PropertyValue.string))])
  }
}

/// The objects of a keyed archive. They refer to each other by their indices, and the first one is the archive's null.
private struct ArchivedObjects {
  var values: [PropertyValue]

  /// Adds an object.
  ///
  /// - Returns: A reference to the object.
  mutating func append(_ object: PropertyValue) -> PropertyValue {
    values.append(object)
    return .uid(UInt64(values.count - 1))
  }

  /// Adds an object that is set later.
  ///
  /// - Returns: The object's index.
  mutating func reserve() -> Int {
    values.append(.null)
    return values.count - 1
  }
}

extension FileRecord {
  /// Returns an archive with a new key, digest and size. All other content is preserved, including unknown content and
  /// names that are not UTF-8.
  ///
  /// - Parameters:
  ///   - encryptionKey: The new key, or `nil` to remove the key.
  ///   - digest: The new digest, or `nil` to keep the old digest.
  ///   - size: The new size of the decrypted file, or `nil` to keep the old size.
  ///   - archive: The archive in a manifest's row.
  /// - Throws: `.malformed` if `archive` is not the archive of a record; the errors of reading and writing a property
  ///   list.
  package static func replacing(
    encryptionKey: ClassWrappedKey?, digest: [UInt8]?, size: Int64? = nil, in archive: [UInt8]
  ) throws(FormatError) -> [UInt8] {
    try BinaryPlist.editing(archive, limits: .small) { (list) throws(FormatError) in
      try replace(encryptionKey: encryptionKey, digest: digest, size: size, in: &list)
    }
  }

  private static func replace(
    encryptionKey: ClassWrappedKey?, digest: [UInt8]?, size: Int64?, in list: inout PropertyValue
  ) throws(FormatError) {
    guard var root = list.dictionaryValue, let values = root["$objects"]?.arrayValue,
      let recordIndex = index(referredToBy: root["$top"]?.dictionaryValue?["root"], in: values),
      var record = values[recordIndex].dictionaryValue
    else { throw FormatError(.fileRecord, .malformed, "it has no root") }
    var objects = ArchivedObjects(values: values)
    // Nothing refers to the old key's object any more.
    if let oldKeyIndex = index(referredToBy: record["EncryptionKey"], in: values), oldKeyIndex != 0,
      oldKeyIndex != recordIndex
    {
      objects.values[oldKeyIndex] = .string("$null")
    }
    record["EncryptionKey"] = nil
    if let size { record["Size"] = .integer(size) }
    if let digest { record["Digest"] = objects.append(.data(digest)) }
    if let encryptionKey {
      let dataClass = objects.append(mutableDataClass)
      record["EncryptionKey"] = objects.append(archived(encryptionKey, class: dataClass))
    }
    objects.values[recordIndex] = .dictionary(record)
    root["$objects"] = .array(objects.values)
    list = .dictionary(root)
  }

  /// Returns the index of the object that a value refers to, or `nil` if the value is not a reference to an object.
  private static func index(referredToBy value: PropertyValue?, in objects: [PropertyValue]) -> Int? {
    guard case .uid(let reference)? = value, let index = Int(exactly: reference), objects.indices.contains(index) else {
      return nil
    }
    return index
  }
}
