import Basics

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
  /// - Throws: what writing the property list throws.
  public func archived() throws(FormatError) -> [UInt8] {
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
