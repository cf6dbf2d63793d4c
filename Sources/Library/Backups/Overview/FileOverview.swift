import Basics
import KeychainFormats

/// The files that a backup lists, summed up by domain and by the first directories of their paths.
///
/// Domains of apps stand under what they begin with: `AppDomain-org.example.app` under `AppDomain`. Every name comes
/// from the backup and is hostile.
public struct DomainTree: Sendable, Equatable {
  /// A domain, a group of them or a directory, with everything below it.
  public struct Node: Sendable, Equatable {
    /// One part of a domain's name or of a path; hostile. Empty for the root.
    public let name: String
    /// Listed files; directories and links are not counted.
    package var fileCount = 0
    /// As stored: an encrypted file has up to sixteen bytes of padding.
    package var storedByteCount: Int64 = 0
    /// Files of which nothing is stored though they are not empty.
    package var missingCount = 0
    /// The largest first.
    package var children: [Node] = []

    init(_ name: String) { self.name = name }

    /// What several nodes come to together, without a name.
    package init(sumOf nodes: some Sequence<Node>) {
      name = ""
      for node in nodes {
        fileCount += node.fileCount
        add(node.storedByteCount)
        missingCount += node.missingCount
      }
    }

    /// Sizes of a container's entries are claims: their sum must not trap.
    mutating func add(_ byteCount: Int64) {
      let (sum, overflow) = storedByteCount.addingReportingOverflow(byteCount)
      storedByteCount = overflow ? .max : sum
    }
  }

  /// Everything together, without a name.
  package let root: Node

  /// The most directories of a path that are told apart; a hostile path may have millions.
  package static let maximumDepth = 64

  private init(root: Node) { self.root = root }

  /// Sums up files as they come, in whatever order.
  package final class Builder {
    private static let slash = UInt8(ascii: "/")
    private let stored: StoredPayloads
    private let depth: Int
    private let root = Branch("")
    /// The branches that the last file was counted in: most files stand beside the one before them.
    private var last: (domain: String, directory: String, branches: [Branch])?

    /// Creates a builder that has counted nothing.
    ///
    /// - Parameters:
    ///   - stored: The payloads that are stored, which give the sizes.
    ///   - depth: How many directories of a path are told apart below its domain, at most `maximumDepth`.
    package init(stored: StoredPayloads, depth: Int = 1) {
      self.stored = stored
      self.depth = min(depth, maximumDepth)
    }

    /// Counts a file; directories, links and what has no domain are passed over.
    package func add(_ file: ListedFile) {
      guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
      let byteCount = stored.byteCount(of: file.fileIdentifier)
      let isMissing = byteCount == nil && stored.lacks(file)
      for branch in branches(domain: domain, path: path) { branch.add(byteCount ?? 0, isMissing: isMissing) }
    }

    /// From the root down to the directory, as deep as directories are told apart.
    private func branches(domain: String, path: String) -> [Branch] {
      // Up to and with the last slash: what a path that ends in one has in front of its file is not that.
      let end = path.utf8.lastIndex(of: Self.slash).map { path.utf8.index(after: $0) } ?? path.startIndex
      let directory = path[..<end]
      let namesFile = end < path.endIndex
      if namesFile, let last, last.domain.utf8.elementsEqual(domain.utf8),
        last.directory.utf8.elementsEqual(directory.utf8)
      {
        return last.branches
      }
      var branches = [root]
      for place in places(domain: domain, path: path) { branches.append(branches[branches.count - 1].below(place)) }
      if namesFile { last = (domain, String(directory), branches) }
      return branches
    }

    /// What was counted by now.
    package var tree: DomainTree { DomainTree(root: root.node) }

    /// "AppDomain", "org.example.app", "Documents"
    private func places(domain: String, path: String) -> [Substring] {
      let group = domain.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
      // The last part is the file itself.
      let directories = path.utf8.split(separator: Self.slash, maxSplits: depth + 1).dropLast().prefix(depth)
      return (group + directories).map(Substring.init)
    }
  }

  /// Nodes while they grow.
  private final class Branch {
    private var sum: Node
    private var branches: [Substring: Branch] = [:]

    init(_ name: String) { sum = Node(name) }

    func add(_ byteCount: Int64, isMissing: Bool) {
      sum.fileCount += 1
      sum.add(byteCount)
      if isMissing { sum.missingCount += 1 }
    }

    func below(_ place: Substring) -> Branch {
      if let branch = branches[place] { return branch }
      let branch = Branch(String(place))
      branches[place] = branch
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

/// The files that a backup lists, by domain and directory, without their names in memory: a few bytes a file, where a
/// list of a million has hundreds of megabytes, and the path of each directory once.
package struct FilesByDirectory: Sendable {
  private struct Directory: Hashable {
    let domain: String
    let path: String
  }

  private var places: [Directory: [FilePlace]] = [:]

  /// Creates an index of no file.
  package init() {}

  /// Enters a file at its place in the list. Directories, links and what has no domain are passed over.
  package mutating func add(_ file: ListedFile, at place: FilePlace) {
    guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
    let directory = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    places[Directory(domain: domain, path: directory), default: []].append(place)
  }

  /// Where the files stand in the list: domains and directories in the order of their names, the files of a directory
  /// in the list's.
  package var inOrder: [FilePlace] {
    places.sorted { ($0.key.domain, $0.key.path) < ($1.key.domain, $1.key.path) }.flatMap { $0.value }
  }
}

/// The files that a backup lists, counted by their domains: of an app, of a group of apps, of a part of iOS.
package struct FilesByDomain: Sendable {
  /// A domain with what is listed in it.
  package struct Domain: Sendable, Equatable {
    /// As the list has it: `AppDomain-org.example.app`; hostile.
    package let name: String
    /// Listed files; directories and links are not counted.
    package var fileCount = 0
    /// As stored: an encrypted file has up to sixteen bytes of padding.
    package var storedByteCount: Int64 = 0
    /// Files of which nothing is stored though they are not empty.
    package var missingCount = 0

    /// The identifier of an app, of a group or of a plugin: what stands after the first hyphen.
    package var identifier: Substring? {
      name.firstIndex(of: "-").map { name[name.index(after: $0)...] }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Sizes of a container's entries are claims: their sum must not trap.
    fileprivate mutating func add(_ byteCount: Int64) {
      let (sum, overflow) = storedByteCount.addingReportingOverflow(byteCount)
      storedByteCount = overflow ? .max : sum
    }
  }

  private var domains: [String: Domain] = [:]

  /// Creates a count of no file.
  package init() {}

  /// Counts a file; directories, links and what has no domain are passed over.
  ///
  /// - Parameters:
  ///   - file: A row of the list.
  ///   - stored: The payloads that are stored, which give the sizes.
  package mutating func add(_ file: ListedFile, stored: StoredPayloads) {
    guard file.kind == .file, let name = file.domain else { return }
    let byteCount = stored.byteCount(of: file.fileIdentifier)
    let isMissing = byteCount == nil && stored.lacks(file)
    domains[name, default: Domain(name: name)].fileCount += 1
    domains[name]?.add(byteCount ?? 0)
    if isMissing { domains[name]?.missingCount += 1 }
  }

  /// The largest first, those of one size by the number of their files and then by their names.
  package var largestFirst: [Domain] {
    domains.values.sorted {
      ($0.storedByteCount, $0.fileCount, $1.name) > ($1.storedByteCount, $1.fileCount, $0.name)
    }
  }
}
