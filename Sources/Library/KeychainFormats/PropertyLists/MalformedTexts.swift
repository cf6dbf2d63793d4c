/// Malformed texts of a binary property list, preserved for writing it again. A placeholder represents each of them.
struct MalformedTexts {
  /// A text object as stored in the list.
  struct StoredText {
    let isUTF16: Bool
    let bytes: [UInt8]
  }

  private(set) var stored: [String: StoredText] = [:]
  /// The start of each placeholder. It is random, so that no list can contain a text that equals a placeholder.
  private let prefix = "malformed text \(UInt64.random(in: .min ... .max)) \(UInt64.random(in: .min ... .max)) "

  /// Adds a text object.
  ///
  /// - Returns: Its placeholder, or `nil` if the object is not a text.
  mutating func add(_ object: BinaryPlistReader.Object, of document: BinaryPlistReader) -> String? {
    let text: StoredText
    switch object {
    case .asciiString(let range):
      text = StoredText(isUTF16: false, bytes: document.bytes.withBytes(range) { Array($0) })
    case .utf16String(let range): text = StoredText(isUTF16: true, bytes: document.bytes.withBytes(range) { Array($0) })
    default: return nil
    }
    let placeholder = prefix + String(stored.count)
    stored[placeholder] = text
    return placeholder
  }
}
