/// The name of a container's entry, after the rules that keep it inside the backup.
///
/// Nothing is ever written under these names; the rules refuse an archive whose names would be dangerous to any tool,
/// because no real backup has them. They look at bytes, as file systems do: an accent behind a slash hides no slash.
package struct EntryPath: Hashable {
  /// At least one; none empty, `.` or `..`.
  package let components: [ArraySlice<UInt8>]

  /// - Throws: What is wrong with the name, as the end of a sentence that begins with it.
  package init(_ name: EntryName, limit: Int) throws(EntryPathFault) {
    let bytes = name.bytes
    guard bytes.count <= limit else { throw .init(text: "its name has \(bytes.count) bytes, over \(limit)") }
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
        throw .init(text: "its name has a part \"\(component.count == 1 ? "." : "..")\"")
      }
      if component.last == Self.dot || component.last == UInt8(ascii: " ") {
        throw .init(text: "a part of its name ends in a dot or a space")
      }
      if component.dropFirst().first == UInt8(ascii: ":") { throw .init(text: "its name has a drive letter") }
    }
    self.components = components
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
