import Basics
import KeychainFormats

/// The name of a container's entry: bytes, as tar and zip have them, which need not be text.
///
/// Names are compared as bytes. Two that differ only in their Unicode form are two names, as they are to tar programs.
package struct EntryName: Hashable, Sendable {
  package let bytes: ArraySlice<UInt8>

  package init(bytes: some Collection<UInt8>) { self.bytes = ArraySlice(bytes) }

  package init(_ text: String) { self.init(bytes: Array(text.utf8)) }

  package static let none = EntryName("")

  package var isEmpty: Bool { bytes.isEmpty }

  /// The name as text; `nil` for bytes that are not UTF-8.
  package var text: String? { String(validating: bytes, as: UTF8.self) }

  /// The name for people: each byte that is not part of a UTF-8 character is spelled `\xE9`.
  package var shown: String {
    if let text { return text }
    var result = ""
    var rest = bytes
    while let first = rest.first {
      // A character has up to four bytes.
      let character = (1...4).lazy.compactMap { String(validating: rest.prefix($0), as: UTF8.self) }.first
      result += character ?? Self.escape(first)
      rest = rest.dropFirst(character?.utf8.count ?? 1)
    }
    return result
  }

  private static func escape(_ byte: UInt8) -> String { "\\x" + String(byte, radix: 16, uppercase: true) }

  /// The name without so many bytes at its end.
  package func dropLast(_ count: Int) -> EntryName { EntryName(bytes: bytes.dropLast(count)) }

  /// The name of what lies in a directory of this name.
  package static func / (directory: EntryName, name: EntryName) -> EntryName {
    EntryName(bytes: directory.bytes + [UInt8(ascii: "/")] + name.bytes)
  }

  package static func + (prefix: EntryName, name: String) -> EntryName {
    EntryName(bytes: prefix.bytes + Array(name.utf8))
  }
}

/// A name between quotes, for the sentence of an error.
package func quoted(_ name: EntryName) -> String {
  guard name.text == nil else { return quoted(name.shown) }
  // Its backslashes are those of the escapes: names with a backslash of their own are refused.
  return quoted(name.shown).replacing("\\\\x", with: "\\x")
}
