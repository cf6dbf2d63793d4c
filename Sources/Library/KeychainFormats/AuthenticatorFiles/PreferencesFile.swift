package import Basics

/// The preferences of an app, a binary property list with a dictionary, read in place. The bytes must outlive it.
package struct PreferencesFile {
  private let document: BinaryPlistReader
  /// The indexes of the values, by name.
  private let values: [String: Int]

  private static let maximumValueCount = 10_000

  /// Reads the names of the values.
  ///
  /// - Throws: `.malformed` if the bytes are not such a property list, `.overLimit` if it has more than 10,000 values.
  package init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    document = try BinaryPlistReader(bytes, limits: .small)
    guard case .dictionary(let keys, let references) = try document.object(at: document.rootIndex) else {
      throw document.malformed("its root is not a dictionary", try document.offset(ofObject: document.rootIndex))
    }
    guard keys.count <= Self.maximumValueCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(keys.count) values; at most \(Self.maximumValueCount) are accepted")
    }
    var values: [String: Int] = [:]
    for position in 0..<keys.count {
      guard let name = try document.text(document.object(at: document.index(position, of: keys))) else { continue }
      values[name] = try document.index(position, of: references)
    }
    self.values = values
  }

  /// Returns the texts in an array; `nil` if there is no such array.
  package func texts(_ name: String) throws(FormatError) -> [String]? {
    guard let index = values[name], case .array(let elements) = try document.object(at: index) else { return nil }
    guard elements.count <= Self.maximumValueCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(elements.count) elements; at most \(Self.maximumValueCount) are accepted")
    }
    var texts: [String] = []
    for position in 0..<elements.count {
      if let text = try document.text(document.object(at: document.index(position, of: elements))) {
        texts.append(text)
      }
    }
    return texts
  }

  /// Returns the ASCII text of a value, copied into memory that is wiped; `nil` if there is no such text.
  package func sensitiveText(_ name: String) throws(FormatError) -> SensitiveBytes? {
    guard let index = values[name], case .asciiString(let range) = try document.object(at: index) else { return nil }
    return document.bytes.withBytes(range) { SensitiveBytes(copying: $0) }
  }
}
