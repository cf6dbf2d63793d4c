package import Basics

extension KeychainItem {
  /// Reads a decrypted item of blob version 2: one binary property list, a dictionary with string keys.
  ///
  /// Secrets are copied only into `SensitiveBytes`.
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion` or `.overLimit`, with the offset.
  package init(plistDictionary bytes: UnsafeRawBufferPointer, kind: ItemKind) throws(FormatError) {
    let document = try BinaryPlistReader(bytes, limits: .item)
    var decoder = BinaryPlistDecoder(document, limits: .item)
    guard case .dictionary(let keys, let values) = try document.object(at: document.rootIndex) else {
      throw document.malformed("an item that is not a dictionary", try document.offset(ofObject: document.rootIndex))
    }
    self.init(kind: kind)
    var readCodes: Set<AttributeCode> = []
    for position in 0..<keys.count {
      let keyIndex = try document.index(position, of: keys)
      let valueIndex = try document.index(position, of: values)
      guard let name = try decoder.value(at: keyIndex).stringValue else {
        throw document.malformed("a key that is not a string", try document.offset(ofObject: keyIndex))
      }
      let code = AttributeCode(rawValue: name)
      guard readCodes.insert(code).inserted else { continue }
      if code.isSecret(in: kind) {
        secrets[code] = try Self.secret(at: valueIndex, code: code, of: document)
      } else {
        let value = try decoder.value(at: valueIndex)
        if value != .null { attributes[code] = value }
      }
    }
  }

  /// Reads a decrypted item of blob version 2 from bytes that are wiped by their last owner.
  ///
  /// - Throws: `FormatError` with the offset if the bytes are not a property list with a dictionary.
  package init(plistDictionary bytes: SensitiveBytes, kind: ItemKind) throws(FormatError) {
    self = try bytes.withBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> KeychainItem in
      try KeychainItem(plistDictionary: buffer, kind: kind)
    }
  }

  /// Returns a secret that is data or ASCII text, or `nil` if it is null.
  private static func secret(
    at index: Int, code: AttributeCode, of document: BinaryPlistReader
  ) throws(FormatError) -> SensitiveBytes? {
    switch try document.object(at: index) {
    case .data(let range), .asciiString(let range):
      return document.bytes.withBytes(range) { SensitiveBytes(copying: $0) }
    case .null:
      return nil
    default:
      throw document.malformed("a value of \(code.rawValue) that is not data", try document.offset(ofObject: index))
    }
  }
}
