import Basics

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
