import Basics

/// The name of a container's entry as bytes, which may not be text.
///
/// Names that differ only in their Unicode normalization are different names, as for tar programs.
package struct EntryName: Hashable, Sendable {
  package let bytes: ArraySlice<UInt8>

  package init(bytes: some Collection<UInt8>) { self.bytes = ArraySlice(bytes) }

  package init(_ text: String) { self.init(bytes: Array(text.utf8)) }

  package static let none = EntryName("")

  package var isEmpty: Bool { bytes.isEmpty }

  /// The name as text, or `nil` if the bytes are not UTF-8.
  package var text: String? { String(validating: bytes, as: UTF8.self) }

  /// The name for display. Bytes that are not UTF-8 are escaped: `\xE9`.
  package var shown: String {
    if let text { return text }
    var result = ""
    var remaining = bytes
    while let byte = remaining.first {
      // A character has at most four bytes.
      let character = (1...4).lazy.compactMap { String(validating: remaining.prefix($0), as: UTF8.self) }.first
      result += character ?? Self.escape(byte)
      remaining = remaining.dropFirst(character?.utf8.count ?? 1)
    }
    return result
  }

  private static func escape(_ byte: UInt8) -> String { "\\x" + String(byte, radix: 16, uppercase: true) }

  /// The part of the name after its last slash.
  package var lastComponent: EntryName {
    EntryName(bytes: bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes[($0 + 1)...] } ?? bytes)
  }

  /// Returns whether the entry is inside a directory.
  package func isInside(_ directory: EntryName) -> Bool {
    bytes.count > directory.bytes.count && bytes.starts(with: directory.bytes)
      && bytes[bytes.startIndex + directory.bytes.count] == UInt8(ascii: "/")
  }

  /// Returns whether the name precedes another name. Names are ordered by their bytes, with the slash as the lowest
  /// byte. Thus all entries of a directory directly follow the directory.
  func precedesAsPath(_ other: EntryName) -> Bool {
    let slash = UInt8(ascii: "/")
    return bytes.lexicographicallyPrecedes(other.bytes) { $0 != $1 && ($0 == slash || $1 != slash && $0 < $1) }
  }

  /// Returns the name without its last `count` bytes.
  package func dropLast(_ count: Int) -> EntryName { EntryName(bytes: bytes.dropLast(count)) }

  /// Returns the name of an entry in a directory.
  package static func / (directory: EntryName, name: EntryName) -> EntryName {
    EntryName(bytes: directory.bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  package static func + (prefix: EntryName, name: String) -> EntryName {
    EntryName(bytes: prefix.bytes + Array(name.utf8))
  }
}

/// Returns a name in quotes for an error.
package func quoted(_ name: EntryName) -> String {
  guard name.text == nil else { return quoted(name.shown) }
  // In `shown`, only escapes contain backslashes, because names with backslashes are rejected. `quoted` doubles the
  // backslashes, and this undoes it.
  return quoted(name.shown).replacing("\\\\x", with: "\\x")
}
