/// The fields of a keybag inside a file. Each has a tag of four letters, a big-endian length of four bytes, and a value.
enum KeybagFields {
  struct Field {
    let tag: String
    let value: [UInt8]
    /// The range of the value.
    let range: Range<Int>
  }

  static func all(in bytes: [UInt8]) -> [Field] {
    // Every keybag starts with its version, an integer of four bytes.
    let firstField = Array("VERS".utf8) + [0, 0, 0, 4]
    guard var offset = bytes.firstRange(of: firstField)?.lowerBound else { return [] }
    var fields: [Field] = []
    while offset + 8 <= bytes.count {
      let tag = String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
      let length = bytes[offset + 4..<offset + 8].reduce(0) { $0 << 8 | Int($1) }
      guard tag.allSatisfy({ $0.isASCII && $0.isUppercase }), offset + 8 + length <= bytes.count else { break }
      let range = offset + 8..<offset + 8 + length
      fields.append(Field(tag: tag, value: Array(bytes[range]), range: range))
      offset += 8 + length
    }
    return fields
  }
}
