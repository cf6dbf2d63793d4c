/// The files of a backup by domain and directory.
///
/// Stores only a position for each file, and each directory's path once. The complete rows of a million files
/// would take hundreds of megabytes.
package struct FilesByDirectory: Sendable {
  private struct Directory: Hashable {
    let domain: String
    let path: String
  }

  private var locations: [Directory: [FileLocation]] = [:]

  /// Creates an empty index.
  package init() {}

  /// Adds a file with its position in the list. Directories, links, and entries without a domain are ignored.
  package mutating func add(_ file: ListedFile, at location: FileLocation) {
    guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    locations[Directory(domain: domain, path: directory), default: []].append(location)
  }

  /// The positions of the files, with domains and directories sorted by name, and the files of a directory in the
  /// list's order.
  package var inOrder: [FileLocation] {
    locations.sorted { ($0.key.domain, $0.key.path) < ($1.key.domain, $1.key.path) }.flatMap { $0.value }
  }
}
