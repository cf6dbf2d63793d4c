import Basics
import KeychainFormats

/// The path of a container's entry, checked to stay inside the backup.
///
/// No file is ever written under the name of an entry. Containers with names that would be dangerous to other tools are
/// refused, because no backup has them. The checks use bytes, as file systems do, so that combining characters cannot
/// hide a slash.
package struct EntryPath: Hashable {
  /// The components, at least one, none of them empty, `.`, or `..`.
  package let components: [ArraySlice<UInt8>]
  /// The components with the slashes between them.
  private let joined: ArraySlice<UInt8>

  /// Creates a path.
  ///
  /// - Throws: The problem with the name, as a clause.
  package init(_ name: EntryName, limit: Int) throws(EntryPathFault) {
    let bytes = name.bytes
    guard bytes.count <= limit else { throw .init(text: "its name has \(bytes.count) bytes (limit: \(limit))") }
    guard !bytes.contains(0) else { throw .init(text: "its name has a NUL") }
    guard !bytes.contains(UInt8(ascii: "\\")) else { throw .init(text: "its name has a backslash") }
    guard bytes.first != Self.slash else { throw .init(text: "its name is absolute") }
    var relative = bytes
    // `tar -c .` begins each name with "./", and a trailing "/" marks a directory.
    if relative.starts(with: [Self.dot, Self.slash]) { relative = relative.dropFirst(2) }
    if relative.last == Self.slash { relative = relative.dropLast() }
    let components = relative.split(separator: Self.slash, omittingEmptySubsequences: false)
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
    joined = relative
  }

  /// Returns the name of the directory that contains the last components, or an empty name if no component precedes
  /// them.
  ///
  /// - Parameter count: The number of these last components.
  package func directory(around count: Int) -> EntryName {
    guard count < components.count else { return .none }
    return EntryName(bytes: joined[..<components[components.count - count - 1].endIndex])
  }

  private static let slash = UInt8(ascii: "/")
  private static let dot = UInt8(ascii: ".")

  /// A key that is equal for names that a case-insensitive or normalizing file system does not distinguish.
  ///
  /// The key consists of two 64-bit hashes with random seeds. Collisions cannot be prepared, and accidental
  /// ones need about 10¹⁹ names.
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
