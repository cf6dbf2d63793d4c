package import Basics

/// The fields of an archive that `NSKeyedArchiver` wrote, read in place. The bytes must outlive this value.
///
/// The fields are those of the archive's root object, or of its `$top` dictionary if it has no root object.
package struct KeyedArchive {
  private let document: BinaryPlistReader
  private let objects: BinaryPlistReader.References
  /// The indexes of the fields' values, by name.
  private let valueIndexes: [String: Int]

  private static let maximumFieldCount = 256

  /// Reads an archive's fields.
  ///
  /// - Throws: `.malformed` if the bytes are not a keyed archive, `.overLimit` if it has more than 256 fields.
  package init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    document = try BinaryPlistReader(bytes, limits: .small)
    let archive = try Self.fields(at: document.rootIndex, in: document)
    guard archive["$archiver"] != nil, let objectsIndex = archive["$objects"], let topIndex = archive["$top"],
      case .array(let objects) = try document.object(at: objectsIndex)
    else { throw document.malformed("not a keyed archive", 0) }
    self.objects = objects
    let topFields = try Self.fields(at: topIndex, in: document)
    if let rootIndex = topFields["root"] {
      valueIndexes = try Self.fields(at: Self.resolved(rootIndex, objects, document), in: document)
    } else {
      valueIndexes = topFields
    }
  }

  /// Returns the string of a field; `nil` if there is no such field, or if it is not a string.
  package func string(_ name: String) throws(FormatError) -> String? {
    try object(name).flatMap { (object) throws(FormatError) in try document.string(object) }
  }

  /// Returns the integer of a field; `nil` if there is no such field, or if it is not a whole number.
  package func integer(_ name: String) throws(FormatError) -> Int64? {
    guard case .integer(let number)? = try object(name) else { return nil }
    return number
  }

  /// Returns the boolean of a field; `nil` if there is no such field, or if it is not a boolean.
  package func boolean(_ name: String) throws(FormatError) -> Bool? {
    guard case .boolean(let value)? = try object(name) else { return nil }
    return value
  }

  /// Returns the data of a field; `nil` if there is no such field, or if it is not data.
  package func data(_ name: String) throws(FormatError) -> SensitiveBytes? {
    switch try object(name) {
    case .data(let range)?:
      return document.bytes.withBytes(range) { SensitiveBytes(copying: $0) }
    case .dictionary?:
      // Mutable data is an object with the bytes in the field `NS.data`.
      guard let index = valueIndexes[name],
        let bytesIndex = try Self.fields(at: Self.resolved(index, objects, document), in: document)["NS.data"],
        case .data(let range) = try document.object(at: Self.resolved(bytesIndex, objects, document))
      else { return nil }
      return document.bytes.withBytes(range) { SensitiveBytes(copying: $0) }
    default: return nil
    }
  }

  private func object(_ name: String) throws(FormatError) -> BinaryPlistReader.Object? {
    guard let index = valueIndexes[name] else { return nil }
    return try document.object(at: Self.resolved(index, objects, document))
  }

  /// Returns the index of the object that the object at `index` refers to, or `index` itself if that object is not a
  /// reference.
  private static func resolved(
    _ index: Int, _ objects: BinaryPlistReader.References, _ document: BinaryPlistReader
  ) throws(FormatError) -> Int {
    guard case .uid(let reference) = try document.object(at: index) else { return index }
    guard let position = Int(exactly: reference), position < objects.count else {
      throw document.malformed("a reference to an object that does not exist", try document.offset(ofObject: index))
    }
    return try document.index(position, of: objects)
  }

  /// Returns the indexes of a dictionary's values, by their keys; empty if the object is not a dictionary.
  private static func fields(at index: Int, in document: BinaryPlistReader) throws(FormatError) -> [String: Int] {
    guard case .dictionary(let keys, let values) = try document.object(at: index) else { return [:] }
    guard keys.count <= maximumFieldCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(keys.count) fields; at most \(maximumFieldCount) are accepted",
        offset: try document.offset(ofObject: index))
    }
    var fields: [String: Int] = [:]
    for position in 0..<keys.count {
      guard let name = try document.string(document.object(at: document.index(position, of: keys))) else { continue }
      fields[name] = try document.index(position, of: values)
    }
    return fields
  }
}
