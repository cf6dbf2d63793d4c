/// The name of a container's entry, after the rules that keep it inside the backup.
///
/// Nothing is ever written under these names; the rules refuse an archive whose names would be dangerous to any tool,
/// because no real backup has them.
struct EntryPath: Hashable {
  /// At least one; none empty, `.` or `..`.
  let components: [Substring]

  /// - Throws: What is wrong with the name, as the end of a sentence that begins with it.
  init(_ name: String, limit: Int) throws(EntryPathFault) {
    guard name.utf8.count <= limit else { throw .init(text: "its name has \(name.utf8.count) bytes, over \(limit)") }
    guard !name.utf8.contains(0) else { throw .init(text: "its name has a NUL") }
    guard !name.utf8.contains(UInt8(ascii: "\\")) else { throw .init(text: "its name has a backslash") }
    guard !name.hasPrefix("/") else { throw .init(text: "its name is absolute") }
    var rest = Substring(name)
    // `tar -c .` writes every name with one leading "./"; a trailing "/" marks a folder.
    if rest.hasPrefix("./") { rest = rest.dropFirst(2) }
    if rest.hasSuffix("/") { rest = rest.dropLast() }
    let components = rest.split(separator: "/", omittingEmptySubsequences: false)
    for component in components {
      switch component {
      case "": throw .init(text: "its name has an empty part")
      case ".", "..": throw .init(text: "its name has a part \"\(component)\"")
      default: break
      }
      if component.hasSuffix(".") || component.hasSuffix(" ") {
        throw .init(text: "a part of its name ends in a dot or a space")
      }
      if component.utf8.dropFirst().first == UInt8(ascii: ":") { throw .init(text: "its name has a drive letter") }
    }
    self.components = components
  }

  /// The same for names that a case-insensitive or normalising file system would not tell apart.
  ///
  /// Two 64-bit values with seeds of this process: no one can prepare a collision, and chance needs 10¹⁹ names.
  var collisionKey: CollisionKey {
    var first = Hasher()
    var second = Hasher()
    first.combine(0 as UInt8)
    second.combine(1 as UInt8)
    for component in components {
      let folded = component.lowercased()
      first.combine(folded)
      second.combine(folded)
    }
    return CollisionKey(first: first.finalize(), second: second.finalize())
  }

  struct CollisionKey: Hashable {
    let first: Int
    let second: Int
  }
}

struct EntryPathFault: Error, Equatable {
  let text: String
}
