import Basics
import KeychainFormats

/// The total sizes of a backup's files by domain and directory.
///
/// Domains of apps are grouped by their prefix: `AppDomain-org.example.app` is in `AppDomain`. All names come from the
/// backup and are untrusted.
public struct DomainTree: Sendable, Equatable {
  /// A domain, a group of domains, or a directory, with its content.
  public struct Node: Sendable, Equatable {
    /// A component of a domain or a path, empty for the root. Untrusted.
    public let name: String
    /// The number of files, without directories and links.
    package var fileCount = 0
    /// The stored size in bytes. An encrypted file has up to 16 bytes of padding.
    package var storedByteCount: Int64 = 0
    /// The number of files that are not empty but have no payload.
    package var missingCount = 0
    /// The children, the largest first.
    package var children: [Node] = []

    init(_ name: String) { self.name = name }

    /// Creates a node without a name, with the sums of several nodes. It has no children.
    package init(sumOf nodes: some Sequence<Node>) {
      name = ""
      for node in nodes {
        fileCount += node.fileCount
        add(node.storedByteCount)
        missingCount += node.missingCount
      }
    }

    /// Adds a size. Sizes in containers are untrusted, so the sum must not trap.
    mutating func add(_ byteCount: Int64) {
      let (sum, overflow) = storedByteCount.addingReportingOverflow(byteCount)
      storedByteCount = overflow ? .max : sum
    }
  }

  /// The root, which has no name.
  package let root: Node

  /// The maximum depth of directories. An untrusted path may have millions.
  package static let maximumDepth = 64

  private init(root: Node) { self.root = root }

  /// A builder that adds files in any order.
  package final class Builder {
    private static let slash = UInt8(ascii: "/")
    private let stored: StoredPayloads
    private let depth: Int
    private let root = Branch("")
    /// The branches of the last file, because adjacent files are usually in the same directory.
    private var last: (domain: String, directory: String, branches: [Branch])?

    /// Creates an empty builder.
    ///
    /// - Parameters:
    ///   - stored: The stored payloads with their sizes.
    ///   - depth: The depth of directories below a domain, at most `maximumDepth`.
    package init(stored: StoredPayloads, depth: Int = 1) {
      self.stored = stored
      self.depth = min(depth, maximumDepth)
    }

    /// Adds a file. Directories, links, and entries without a domain are ignored.
    package func add(_ file: ListedFile) {
      guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
      let byteCount = stored.byteCount(of: file.fileIdentifier)
      let isMissing = byteCount == nil && stored.lacks(file)
      for branch in branches(domain: domain, path: path) { branch.add(byteCount ?? 0, isMissing: isMissing) }
    }

    /// Returns the branches from the root to the directory, up to the maximum depth.
    private func branches(domain: String, path: String) -> [Branch] {
      let directoryEnd = path.utf8.lastIndex(of: Self.slash).map { path.utf8.index(after: $0) } ?? path.startIndex
      let directory = path[..<directoryEnd]
      // A path that ends with a slash has no file name.
      let hasFileName = directoryEnd < path.endIndex
      if hasFileName, let last, last.domain.utf8.elementsEqual(domain.utf8),
        last.directory.utf8.elementsEqual(directory.utf8)
      {
        return last.branches
      }
      var branches = [root]
      for component in components(domain: domain, path: path) {
        branches.append(branches[branches.count - 1].child(component))
      }
      if hasFileName { last = (domain, String(directory), branches) }
      return branches
    }

    /// The current tree.
    package var tree: DomainTree { DomainTree(root: root.node) }

    /// Returns the components, such as "AppDomain", "org.example.app", and "Documents".
    private func components(domain: String, path: String) -> [Substring] {
      let group = domain.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
      // The last component is the file name.
      let directories = path.utf8.split(separator: Self.slash, maxSplits: depth + 1).dropLast().prefix(depth)
      return (group + directories).map(Substring.init)
    }
  }

  /// A node under construction.
  private final class Branch {
    private var sum: Node
    private var branches: [Substring: Branch] = [:]

    init(_ name: String) { sum = Node(name) }

    func add(_ byteCount: Int64, isMissing: Bool) {
      sum.fileCount += 1
      sum.add(byteCount)
      if isMissing { sum.missingCount += 1 }
    }

    /// Returns the child with a name, which is added if necessary.
    func child(_ name: Substring) -> Branch {
      if let branch = branches[name] { return branch }
      let branch = Branch(String(name))
      branches[name] = branch
      return branch
    }

    var node: Node {
      var node = sum
      node.children = branches.values.map(\.node).sorted {
        ($0.storedByteCount, $0.fileCount, $1.name) > ($1.storedByteCount, $1.fileCount, $0.name)
      }
      return node
    }
  }
}

/// The files of a backup by domain and directory.
///
/// Stores only a location for each file, and each directory's path once. The complete rows of a million files
/// would take hundreds of megabytes.
package struct FilesByDirectory: Sendable {
  private struct Directory: Hashable {
    let domain: String
    let path: String
  }

  private var locations: [Directory: [FileLocation]] = [:]

  /// Creates an empty index.
  package init() {}

  /// Adds a file with its location in the file list. Directories, links, and entries without a domain are ignored.
  package mutating func add(_ file: ListedFile, at location: FileLocation) {
    guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    locations[Directory(domain: domain, path: directory), default: []].append(location)
  }

  /// The locations of the files. Domains and directories are sorted by name. The files of a directory are in the order
  /// of the file list.
  package var inOrder: [FileLocation] {
    locations.sorted { ($0.key.domain, $0.key.path) < ($1.key.domain, $1.key.path) }.flatMap { $0.value }
  }
}
