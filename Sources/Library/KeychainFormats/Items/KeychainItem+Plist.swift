public import Basics

extension KeychainItem {
  /// Reads a decrypted item of blob version 2: one binary property list, a dictionary with string keys.
  ///
  /// Secrets are copied into `SensitiveBytes` and nowhere else.
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion` or `.overLimit`, with the offset.
  public init(plistDictionary bytes: UnsafeRawBufferPointer, kind: ItemKind) throws(FormatError) {
    let document = try BinaryPlistDocument(bytes, limits: .item)
    var builder = BinaryPlistBuilder(document, limits: .item)
    guard case .dictionary(let keys, let values) = try document.object(at: document.rootIndex) else {
      throw document.malformed("an item that is not a dictionary", try document.offset(ofObject: document.rootIndex))
    }
    self.init(kind: kind)
    var seen: Set<AttributeCode> = []
    for position in 0..<keys.count {
      let keyIndex = try document.index(position, of: keys)
      let valueIndex = try document.index(position, of: values)
      guard let name = try builder.value(at: keyIndex).stringValue else {
        throw document.malformed("a key that is not a string", try document.offset(ofObject: keyIndex))
      }
      let code = AttributeCode(rawValue: name)
      guard seen.insert(code).inserted else { continue }
      if code.isSecret(in: kind) {
        secrets[code] = try Self.secret(at: valueIndex, code: code, of: document)
      } else {
        let value = try builder.value(at: valueIndex)
        if value != .null { attributes[code] = value }
      }
    }
  }

  /// Reads a decrypted item of blob version 2 from bytes that are wiped by their last holder.
  ///
  /// - Throws: `FormatError` where the bytes are no property list of a dictionary, with the offset.
  public init(plistDictionary bytes: SensitiveBytes, kind: ItemKind) throws(FormatError) {
    self = try bytes.withBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> KeychainItem in
      try KeychainItem(plistDictionary: buffer, kind: kind)
    }
  }

  /// Data, or an ASCII text as its bytes.
  private static func secret(
    at index: Int, code: AttributeCode, of document: BinaryPlistDocument
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
