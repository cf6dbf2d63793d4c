import Basics
import KeychainFormats

/// The name of a container's entry, after the rules that keep it inside the backup.
///
/// Nothing is ever written under these names; the rules refuse an archive whose names would be dangerous to any tool,
/// because no real backup has them. They look at bytes, as file systems do: an accent behind a slash hides no slash.
package struct EntryPath: Hashable {
  /// At least one; none empty, `.` or `..`.
  package let components: [ArraySlice<UInt8>]
  /// The components with the slashes between them.
  private let joined: ArraySlice<UInt8>

  /// - Throws: What is wrong with the name, as the end of a sentence that begins with it.
  package init(_ name: EntryName, limit: Int) throws(EntryPathFault) {
    let bytes = name.bytes
    guard bytes.count <= limit else { throw .init(text: "its name has \(bytes.count) bytes (limit: \(limit))") }
    guard !bytes.contains(0) else { throw .init(text: "its name has a NUL") }
    guard !bytes.contains(UInt8(ascii: "\\")) else { throw .init(text: "its name has a backslash") }
    guard bytes.first != Self.slash else { throw .init(text: "its name is absolute") }
    var rest = bytes
    // `tar -c .` writes every name with one leading "./"; a trailing "/" marks a directory.
    if rest.starts(with: [Self.dot, Self.slash]) { rest = rest.dropFirst(2) }
    if rest.last == Self.slash { rest = rest.dropLast() }
    let components = rest.split(separator: Self.slash, omittingEmptySubsequences: false)
    for component in components {
      if component.isEmpty { throw .init(text: "its name has an empty part") }
      if component.count <= 2, component.allSatisfy({ $0 == Self.dot }) {
        throw .init(text: "a part of its name is \"\(component.count == 1 ? "." : "..")\"")
      }
      if component.last == Self.dot || component.last == UInt8(ascii: " ") {
        throw .init(text: "a part of its name ends in a dot or a space")
      }
      if component.dropFirst().first == UInt8(ascii: ":") { throw .init(text: "its name has a drive letter") }
    }
    self.components = components
    joined = rest
  }

  /// Returns the name of the directory around the last components; empty if there are no others.
  ///
  /// - Parameter count: The number of components inside the directory.
  package func directory(around count: Int) -> EntryName {
    guard count < components.count else { return .none }
    return EntryName(bytes: joined[..<components[components.count - count - 1].endIndex])
  }

  private static let slash = UInt8(ascii: "/")
  private static let dot = UInt8(ascii: ".")

  /// The same for names that a case-insensitive or normalizing file system would not tell apart.
  ///
  /// Two 64-bit values with seeds of this process: no one can prepare a collision, and chance needs 10¹⁹ names.
  package var collisionKey: CollisionKey {
    var first = Hasher()
    var second = Hasher()
    first.combine(0 as UInt8)
    second.combine(1 as UInt8)
    for component in components {
      if let text = String(validating: component, as: UTF8.self) {
        let folded = text.lowercased()
        first.combine(folded)
        second.combine(folded)
      } else {
        let folded = component.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        first.combine(folded)
        second.combine(folded)
      }
    }
    return CollisionKey(first: first.finalize(), second: second.finalize())
  }

  package struct CollisionKey: Hashable {
    package let first: Int
    package let second: Int
  }
}

package struct EntryPathFault: Error, Equatable {
  package let text: String
}

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

  /// The part of the name after its last slash.
  package var lastComponent: EntryName {
    EntryName(bytes: bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes[($0 + 1)...] } ?? bytes)
  }

  /// Whether the name is that of something below a directory.
  package func isInside(_ directory: EntryName) -> Bool {
    bytes.count > directory.bytes.count && bytes.starts(with: directory.bytes)
      && bytes[bytes.startIndex + directory.bytes.count] == UInt8(ascii: "/")
  }

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
