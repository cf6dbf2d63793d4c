package import Basics

/// Reads values from an app's preferences, a binary property list whose root is a dictionary.
///
/// The values are read in place, so the bytes must outlive this value.
package struct PreferencesFile {
  private let document: BinaryPlistReader
  /// The indexes of the values, by name.
  private let valueIndexes: [String: Int]

  private static let maximumValueCount = 10_000

  /// Reads the names of the values.
  ///
  /// - Throws: `.malformed` if the bytes are not a binary property list with a dictionary, `.overLimit` if it has more
  ///   than 10,000 values.
  package init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
    document = try BinaryPlistReader(bytes, limits: .small)
    guard case .dictionary(let keys, let references) = try document.object(at: document.rootIndex) else {
      throw document.malformed("its root is not a dictionary", try document.offset(ofObject: document.rootIndex))
    }
    guard keys.count <= Self.maximumValueCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(keys.count) values; at most \(Self.maximumValueCount) are accepted")
    }
    var valueIndexes: [String: Int] = [:]
    for position in 0..<keys.count {
      guard let name = try document.string(document.object(at: document.index(position, of: keys))) else { continue }
      valueIndexes[name] = try document.index(position, of: references)
    }
    self.valueIndexes = valueIndexes
  }

  /// Returns the strings in a named array; `nil` if there is no value with the name, or if it is not an array.
  package func strings(_ name: String) throws(FormatError) -> [String]? {
    guard let index = valueIndexes[name], case .array(let elements) = try document.object(at: index) else { return nil }
    guard elements.count <= Self.maximumValueCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(elements.count) elements; at most \(Self.maximumValueCount) are accepted")
    }
    var strings: [String] = []
    for position in 0..<elements.count {
      if let string = try document.string(document.object(at: document.index(position, of: elements))) {
        strings.append(string)
      }
    }
    return strings
  }

  /// Returns a named ASCII string, copied into memory that is wiped; `nil` if there is no value with the name, or if it
  /// is not an ASCII string.
  package func sensitiveString(_ name: String) throws(FormatError) -> SensitiveBytes? {
    guard let index = valueIndexes[name], case .asciiString(let range) = try document.object(at: index) else {
      return nil
    }
    return document.bytes.withBytes(range) { SensitiveBytes(copying: $0) }
  }
}
