import Basics
import KeychainFormats

/// The names of a backup's files in a destination folder: `domain/path`. The components are safe, and unique on every
/// file system.
///
/// Files that are added again in the same order get the same names.
///
/// Directories are added first. A file or link that has the same name as a directory gets a different name.
struct ExtractionPaths {
  /// A directory of the tree. The first one is the destination folder itself.
  struct Directory: Sendable {
    let parent: Int
    let name: String
    /// The directory's row in the list, if it has one.
    var location: FileLocation?
  }

  /// The maximum size of a path within its domain, in UTF-8 bytes (the device's `PATH_MAX`).
  static let maximumPathByteCount = 1_024
  /// The maximum number of directories.
  static let maximumDirectoryCount = 1_000_000

  private(set) var directories = [Directory(parent: 0, name: "")]
  private var indices: [DirectoryKey: Int] = [:]
  private var usedNames: Set<UsedName>
  /// The directory that was returned last. It is kept because rows of a directory are usually adjacent.
  private var last: (domain: [UInt8], path: ArraySlice<UInt8>, index: Int)?

  /// A directory by its name in the backup.
  private struct DirectoryKey: Hashable {
    let parent: Int
    let bytes: [UInt8]
  }

  /// A used name in a directory, as two hashes of its folded form to save memory with millions of names.
  private struct UsedName: Hashable {
    let first: Int
    let second: Int

    init(_ name: String, in parent: Int) {
      let folded = SafeName.folded(name)
      var hashers = (Hasher(), Hasher())
      hashers.0.combine(parent)
      hashers.0.combine(folded)
      hashers.1.combine(folded)
      hashers.1.combine(parent)
      (first, second) = (hashers.0.finalize(), hashers.1.finalize())
    }
  }

  /// Creates an empty tree.
  ///
  /// - Parameter reserved: Names in the destination folder that must not be used.
  init(reserved: [String]) { usedNames = Set(reserved.map { UsedName($0, in: 0) }) }

  /// Returns whether the domain or the path of a file is longer than any on a device.
  static func isTooLong(_ file: ListedFile) -> Bool {
    (file.undecodedPath?.count ?? file.relativePath?.utf8.count ?? 0) > maximumPathByteCount
      || (file.undecodedDomain?.count ?? file.domain?.utf8.count ?? 0) > maximumPathByteCount
  }

  /// Splits a path into its directory, which is `nil` at the top of the domain, and its name. Returns `nil` if the path
  /// is that of the domain itself.
  static func parts(of path: [UInt8]) -> (parent: ArraySlice<UInt8>?, name: ArraySlice<UInt8>)? {
    guard !path.isEmpty else { return nil }
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return (nil, path[...]) }
    return (path[..<slash], path[(slash + 1)...])
  }

  /// Returns the index of a directory, which is added if necessary.
  ///
  /// - Parameter path: The path relative to its domain, or `nil` if it is the domain's directory.
  mutating func directory(
    _ domain: [UInt8], _ path: ArraySlice<UInt8>?
  ) throws(KeyhaulError) -> Int {
    if let last, last.domain == domain, let path, last.path == path {
      return last.index
    }
    var index = try addDirectory(domain[...], in: 0)
    guard let path else { return index }
    for component in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      index = try addDirectory(component, in: index)
    }
    last = (domain, path, index)
    return index
  }

  private mutating func addDirectory(_ component: ArraySlice<UInt8>, in parent: Int) throws(KeyhaulError) -> Int {
    let key = DirectoryKey(parent: parent, bytes: Array(component))
    if let index = indices[key] { return index }
    guard directories.count < Self.maximumDirectoryCount else {
      throw KeyhaulError(
        .overLimit, "its files are in more than \(HumanReadable.grouped(Int64(Self.maximumDirectoryCount))) folders")
    }
    // Directories with the same name in different parents get different digits.
    let distinguishingBytes: [UInt8] = Array("\(parent)/".utf8) + component
    let name = try uniqueName(try SafeName.name(of: component), in: parent, distinguishedBy: distinguishingBytes)
    directories.append(Directory(parent: parent, name: name))
    indices[key] = directories.count - 1
    return directories.count - 1
  }

  /// Sets the directory's row in the list.
  mutating func set(_ location: FileLocation, of directory: Int) { directories[directory].location = location }

  /// Returns the name of a file or link in its directory.
  mutating func name(
    of component: ArraySlice<UInt8>, in directory: Int, identifier: String
  ) throws(KeyhaulError) -> String {
    try uniqueName(try SafeName.name(of: component), in: directory, distinguishedBy: Array(identifier.utf8))
  }

  /// Returns the name if it is unused in the directory, otherwise the name with hash digits. Marks the result as used.
  private mutating func uniqueName(
    _ name: String, in parent: Int, distinguishedBy distinguishingBytes: [UInt8]
  ) throws(KeyhaulError) -> String {
    if usedNames.insert(UsedName(name, in: parent)).inserted { return name }
    for count in [8, 16, 40] {
      let distinguishedName = try SafeName.distinguished(name, by: distinguishingBytes, digits: count)
      if usedNames.insert(UsedName(distinguishedName, in: parent)).inserted { return distinguishedName }
    }
    throw KeyhaulError(.hostile, "\(UntrustedText.quoted(name)) and names derived from it are listed repeatedly")
  }

  /// Returns the names on the path to a directory, starting below the destination folder.
  static func names(of index: Int, in directories: [Directory]) -> [String] {
    var names: [String] = []
    var index = index
    while index != 0 {
      names.append(directories[index].name)
      index = directories[index].parent
    }
    return names.reversed()
  }
}
