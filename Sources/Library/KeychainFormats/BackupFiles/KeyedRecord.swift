import Basics

/// The record in an `NSKeyedArchiver` archive, read in place. The bytes must outlive the record.
///
/// A field's value may be stored in the record itself or behind several references. Only objects that a field refers to
/// are read, because a manifest may have a million records.
///
/// ```
/// archive  dictionary: $objects (an array), $top (a dictionary: root, a reference to the record), …
/// record   dictionary: the name of each field, its value or a reference to it
/// ```
struct KeyedRecord {
  /// The fields of an `MBFile` object.
  ///
  /// Source: as for `FileRecord`.
  enum Field: Int, CaseIterable {
    case relativePath, target, digest, encryptionKey, mode, inode, userID, groupID, lastModified, lastStatusChange
    case birth, size, protectionClass, extendedAttributes, flags

    var name: StaticString {
      switch self {
      case .relativePath: "RelativePath"
      case .target: "Target"
      case .digest: "Digest"
      case .encryptionKey: "EncryptionKey"
      case .mode: "Mode"
      case .inode: "InodeNumber"
      case .userID: "UserID"
      case .groupID: "GroupID"
      case .lastModified: "LastModified"
      case .lastStatusChange: "LastStatusChange"
      case .birth: "Birth"
      case .size: "Size"
      case .protectionClass: "ProtectionClass"
      case .extendedAttributes: "ExtendedAttributes"
      case .flags: "Flags"
      }
    }
  }

  private let document: BinaryPlistReader
  private let objects: BinaryPlistReader.References
  /// The index of each field's value, or -1 if the record does not have the field.
  private var valueIndexes = [Int](repeating: -1, count: Field.allCases.count)

  /// The maximum number of references between a field and its value; devices write one reference.
  private static let maximumHops = 16

  init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    document = try BinaryPlistReader(bytes, limits: .small)
    guard let archive = try Self.dictionary(at: document.rootIndex, of: document),
      let objectsIndex = try archive.valueIndex(forKey: "$objects"),
      case .array(let objects) = try document.object(at: objectsIndex)
    else { throw FormatError(.fileRecord, .malformed, "it has no $objects") }
    self.objects = objects
    guard let topIndex = try archive.valueIndex(forKey: "$top"),
      let rootIndex = try Self.dictionary(at: topIndex, of: document)?.valueIndex(forKey: "root"),
      let recordIndex = try resolve(rootIndex, "root"),
      let record = try Self.dictionary(at: recordIndex, of: document)
    else { throw FormatError(.fileRecord, .malformed, "its root is not a dictionary") }
    for position in 0..<record.keys.count {
      let keyIndex = try document.index(position, of: record.keys)
      guard let field = try Self.field(namedAt: keyIndex, in: document) else { continue }
      if valueIndexes[field.rawValue] < 0 {
        valueIndexes[field.rawValue] = try document.index(position, of: record.values)
      }
    }
  }

  // MARK: Dictionaries

  private struct DictionaryReader {
    let document: BinaryPlistReader
    let keys: BinaryPlistReader.References
    let values: BinaryPlistReader.References

    /// Returns the index of the value of the first key with this name, or `nil` if there is none.
    func valueIndex(forKey name: StaticString) throws(FormatError) -> Int? {
      for position in 0..<keys.count {
        let key = try document.object(at: document.index(position, of: keys))
        if document.isString(key, equalTo: name) { return try document.index(position, of: values) }
      }
      return nil
    }
  }

  private static func dictionary(at index: Int, of document: BinaryPlistReader) throws(FormatError) -> DictionaryReader?
  {
    guard case .dictionary(let keys, let values) = try document.object(at: index) else { return nil }
    guard keys.count <= FileRecord.maximumKeyCount else {
      throw FormatError(
        .fileRecord, .overLimit, "it has \(keys.count) keys; at most \(FileRecord.maximumKeyCount) are accepted",
        offset: try document.offset(ofObject: index))
    }
    return DictionaryReader(document: document, keys: keys, values: values)
  }

  /// Returns the field whose name is the string at an index, or `nil` if no field has this name.
  private static func field(namedAt index: Int, in document: BinaryPlistReader) throws(FormatError) -> Field? {
    let key = try document.object(at: index)
    return Field.allCases.first { document.isString(key, equalTo: $0.name) }
  }

  // MARK: Values

  /// Returns the index of the object that a value refers to, or `nil` if that is the archive's null.
  private func resolve(_ index: Int, _ name: StaticString) throws(FormatError) -> Int? {
    var index = index
    for _ in 0...Self.maximumHops {
      switch try document.object(at: index) {
      case .null: return nil
      case .uid(let reference):
        guard let position = Int(exactly: reference), position < objects.count else {
          throw FormatError(.fileRecord, .malformed, "\(name) refers to no object")
        }
        if position == 0 { return nil }
        index = try document.index(position, of: objects)
      default: return index
      }
    }
    throw FormatError(
      .fileRecord, .malformed, "\(name) refers to itself, or leads through more than \(Self.maximumHops) objects")
  }

  private func resolve(_ field: Field) throws(FormatError) -> Int? {
    let index = valueIndexes[field.rawValue]
    return index < 0 ? nil : try resolve(index, field.name)
  }

  /// Returns the value of a field, or `nil` if there is none.
  ///
  /// A dictionary with the key `wrapper` stands for the value of this key. If this value refers to the archive's null,
  /// the result is `.null`.
  private func content(
    _ field: Field, wrappedAs wrapper: StaticString
  ) throws(FormatError) -> BinaryPlistReader.Object? {
    guard let index = try resolve(field) else { return nil }
    guard let wrappedIndex = try Self.dictionary(at: index, of: document)?.valueIndex(forKey: wrapper) else {
      return try document.object(at: index)
    }
    guard let contentIndex = try resolve(wrappedIndex, field.name) else { return .null }
    return try document.object(at: contentIndex)
  }

  /// Returns the text of a bare string or an `NS.string` object.
  func name(_ field: Field) throws(FormatError) -> DecodedName? {
    guard let object = try content(field, wrappedAs: "NS.string") else { return nil }
    guard let name = document.name(object) else {
      throw FormatError(.fileRecord, .malformed, "its \(field.name) is not text")
    }
    return name
  }

  /// Returns the bytes of bare data or an `NS.data` object.
  func data(_ field: Field) throws(FormatError) -> [UInt8]? {
    guard let object = try content(field, wrappedAs: "NS.data") else { return nil }
    guard case .data(let range) = object else {
      throw FormatError(.fileRecord, .malformed, "its \(field.name) is not data")
    }
    return document.bytes.withBytes(range) { Array($0) }
  }

  func number<Number: FixedWidthInteger>(_ field: Field) throws(FormatError) -> Number? {
    guard let index = try resolve(field) else { return nil }
    guard case .integer(let value) = try document.object(at: index), let number = Number(exactly: value) else {
      throw FormatError(.fileRecord, .malformed, "its \(field.name) is not a number of the right size")
    }
    return number
  }

  /// Returns the inode. Any 64 bits are accepted, because a device archives it as a signed number.
  func inode() throws(FormatError) -> UInt64 {
    guard let index = try resolve(.inode) else { return 0 }
    switch try document.object(at: index) {
    case .integer(let number): return UInt64(bitPattern: number)
    case .unsignedInteger(let number): return number
    default: throw FormatError(.fileRecord, .malformed, "its \(Field.inode.name) is not a number")
    }
  }
}

extension BinaryPlistReader {
  /// Returns the text of a string object, which may be malformed, or `nil` if the object is not a string.
  fileprivate func name(_ object: Object) -> DecodedName? {
    switch object {
    case .asciiString(let range): bytes.withBytes(range) { DecodedName($0) }
    case .utf16String(let range): DecodedName(utf16: utf16Units(in: range))
    default: nil
    }
  }

  /// Returns whether an object is the given ASCII string, without creating a `String`.
  fileprivate func isString(_ object: Object, equalTo text: StaticString) -> Bool {
    switch object {
    case .asciiString(let range):
      guard range.count == text.utf8CodeUnitCount else { return false }
      return text.withUTF8Buffer { bytes.begins(with: $0, at: range.lowerBound) }
    case .utf16String(let range):
      guard range.count == 2 * text.utf8CodeUnitCount else { return false }
      return text.withUTF8Buffer { name in
        name.indices.allSatisfy { offset in
          bytes[range.lowerBound + 2 * offset] == 0 && bytes[range.lowerBound + 2 * offset + 1] == name[offset]
        }
      }
    default: return false
    }
  }
}
