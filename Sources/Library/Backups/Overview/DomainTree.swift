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
    public var fileCount = 0
    /// As stored: an encrypted file has up to sixteen bytes of padding.
    public var storedByteCount: Int64 = 0
    /// Files of which nothing is stored though they are not empty.
    public var missingCount = 0
    /// The largest first.
    public var children: [Node] = []

    init(_ name: String) { self.name = name }

    /// What several nodes come to together, without a name.
    public init(sumOf nodes: some Sequence<Node>) {
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
  public let root: Node

  /// The most directories of a path that are told apart; a hostile path may have millions.
  public static let maximumDepth = 64

  private init(root: Node) { self.root = root }

  /// Sums up files as they come, in whatever order.
  public final class Builder {
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
    public init(stored: StoredPayloads, depth: Int = 1) {
      self.stored = stored
      self.depth = min(depth, maximumDepth)
    }

    /// Counts a file; directories, links and what has no domain are passed over.
    public func add(_ file: ListedFile) {
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
    public var tree: DomainTree { DomainTree(root: root.node) }

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
