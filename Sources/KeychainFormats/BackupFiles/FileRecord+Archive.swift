extension FileRecord {
  /// Reads the archive of a manifest's row. References may stand at any level, values may be bare or wrapped.
  ///
  /// - Throws: `.malformed` that names the field; what reading the property list throws.
  public init(archive bytes: [UInt8]) throws(FormatError) {
    let archive = try KeyedArchive(bytes)
    let record = try archive.root()
    guard let relativePath = try archive.string("RelativePath", of: record) else {
      throw FormatError(.fileRecord, .malformed, "it has no RelativePath")
    }
    self.init(
      relativePath: relativePath,
      target: try archive.string("Target", of: record),
      digest: try archive.data("Digest", of: record),
      encryptionKey: try archive.data("EncryptionKey", of: record).map(ClassWrappedKey.init(parsing:)),
      mode: try archive.number("Mode", of: record, as: UInt32.self) ?? 0,
      inode: try archive.inode(of: record),
      userID: try archive.number("UserID", of: record, as: Int64.self) ?? 0,
      groupID: try archive.number("GroupID", of: record, as: Int64.self) ?? 0,
      lastModified: try archive.number("LastModified", of: record, as: Int64.self) ?? 0,
      lastStatusChange: try archive.number("LastStatusChange", of: record, as: Int64.self) ?? 0,
      birth: try archive.number("Birth", of: record, as: Int64.self) ?? 0,
      size: try archive.number("Size", of: record, as: Int64.self) ?? 0,
      protectionClass: KeyClass(rawValue: try archive.number("ProtectionClass", of: record, as: UInt32.self) ?? 0),
      extendedAttributes: try archive.data("ExtendedAttributes", of: record),
      flags: try archive.number("Flags", of: record, as: Int64.self) ?? 0)
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

/// The objects of an `NSKeyedArchiver` archive, with references followed wherever they stand.
private struct KeyedArchive {
  private let objects: [PropertyValue]
  private let top: PropertyValue?

  /// How many references may lie between a field and its value; in what devices write there is one.
  private static let maximumHops = 16

  init(_ bytes: [UInt8]) throws(FormatError) {
    let plist = try BinaryPlist.decode(bytes, limits: .small).dictionaryValue
    guard let objects = plist?["$objects"]?.arrayValue else {
      throw FormatError(.fileRecord, .malformed, "it has no $objects")
    }
    self.objects = objects
    top = plist?["$top"]?.dictionaryValue?["root"]
  }

  func root() throws(FormatError) -> PropertyDictionary {
    guard let top, let root = try resolve(top, "root")?.dictionaryValue else {
      throw FormatError(.fileRecord, .malformed, "its root is no dictionary")
    }
    return root
  }

  /// The object behind a value; `nil` for the archive's null.
  private func resolve(_ value: PropertyValue, _ name: String) throws(FormatError) -> PropertyValue? {
    var value = value
    for _ in 0...Self.maximumHops {
      guard case .uid(let number) = value else { return value == .null ? nil : value }
      guard let index = Int(exactly: number), objects.indices.contains(index) else {
        throw FormatError(.fileRecord, .malformed, "\(name) refers to no object")
      }
      if index == 0 { return nil }
      value = objects[index]
    }
    throw FormatError(
      .fileRecord, .malformed, "\(name) refers to itself, or through more than \(Self.maximumHops) objects")
  }

  private func resolve(_ name: String, of record: PropertyDictionary) throws(FormatError) -> PropertyValue? {
    guard let value = record[name] else { return nil }
    return try resolve(value, name)
  }

  /// A bare text or an `NS.string` object.
  func string(_ name: String, of record: PropertyDictionary) throws(FormatError) -> String? {
    guard let value = try resolve(name, of: record) else { return nil }
    let inner = try value.dictionaryValue.flatMap { $0["NS.string"] }.map { (inner) throws(FormatError) in
      try resolve(inner, name)
    }
    guard let text = (inner ?? value)?.stringValue else {
      throw FormatError(.fileRecord, .malformed, "its \(name) is no text")
    }
    return text
  }

  /// Bare data or an `NS.data` object.
  func data(_ name: String, of record: PropertyDictionary) throws(FormatError) -> [UInt8]? {
    guard let value = try resolve(name, of: record) else { return nil }
    let inner = try value.dictionaryValue.flatMap { $0["NS.data"] }.map { (inner) throws(FormatError) in
      try resolve(inner, name)
    }
    guard let bytes = (inner ?? value)?.dataValue else {
      throw FormatError(.fileRecord, .malformed, "its \(name) is no data")
    }
    return bytes
  }

  func number<Number: FixedWidthInteger>(
    _ name: String, of record: PropertyDictionary, as type: Number.Type
  ) throws(FormatError) -> Number? {
    guard let value = try resolve(name, of: record) else { return nil }
    guard let number = value.integerValue.flatMap(Number.init(exactly:)) else {
      throw FormatError(.fileRecord, .malformed, "its \(name) is no number of its size")
    }
    return number
  }

  /// Any 64 bits; a device archives them as a signed number.
  func inode(of record: PropertyDictionary) throws(FormatError) -> UInt64 {
    switch try resolve("InodeNumber", of: record) {
    case nil: return 0
    case .integer(let number)?: return UInt64(bitPattern: number)
    case .unsignedInteger(let number)?: return number
    default: throw FormatError(.fileRecord, .malformed, "its InodeNumber is no number")
    }
  }
}
