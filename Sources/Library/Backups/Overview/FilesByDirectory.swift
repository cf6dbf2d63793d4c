/// The files that a backup lists, by domain and directory, without their names in memory: a few bytes a file, where a
/// list of a million has hundreds of megabytes, and the path of each directory once.
public struct FilesByDirectory: Sendable {
  private struct Directory: Hashable {
    let domain: String
    let path: String
  }

  private var places: [Directory: [FilePlace]] = [:]

  /// Creates an index of no file.
  public init() {}

  /// Enters a file at its place in the list. Directories, links and what has no domain are passed over.
  public mutating func add(_ file: ListedFile, at place: FilePlace) {
    guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    places[Directory(domain: domain, path: directory), default: []].append(place)
  }

  /// Where the files stand in the list: domains and directories in the order of their names, the files of a directory
  /// in the list's.
  public var inOrder: [FilePlace] {
    places.sorted { ($0.key.domain, $0.key.path) < ($1.key.domain, $1.key.path) }.flatMap { $0.value }
  }
}
