public import BackupArchive
import KeychainFormats

/// The files that a backup lists, summed up by domain and by the first folders of their paths.
///
/// Domains of apps stand under what they begin with: `AppDomain-org.example.app` under `AppDomain`. Every name comes from
/// the backup and is hostile.
public struct DomainTree: Sendable, Equatable {
  /// A domain, a group of them or a folder, with everything below it.
  public struct Node: Sendable, Equatable {
    public let name: String
    /// Listed files; folders and links are not counted.
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

  public let root: Node

  /// The most folders of a path that are told apart; a hostile path may have millions.
  public static let mostDepth = 64

  private init(root: Node) { self.root = root }

  /// Sums up files as they come, in whatever order.
  public final class Builder {
    private let stored: StoredPayloads
    private let depth: Int
    private let root = Branch("")

    /// - Parameter depth: How many folders of a path are told apart below its domain, at most `mostDepth`.
    public init(stored: StoredPayloads, depth: Int = 1) {
      self.stored = stored
      self.depth = min(depth, mostDepth)
    }

    public func add(_ file: ListedFile) {
      guard file.kind == .file, let domain = file.domain, let path = file.relativePath else { return }
      let byteCount = stored.byteCount(of: file.fileIdentifier) ?? 0
      root.add(places(domain: domain, path: path)[...], byteCount, isMissing: stored.lacks(file))
    }

    public var tree: DomainTree { DomainTree(root: root.node) }

    /// "AppDomain", "org.example.app", "Documents"
    private func places(domain: String, path: String) -> [Substring] {
      let group = domain.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
      // The last part is the file itself.
      let folders = path.utf8.split(separator: UInt8(ascii: "/"), maxSplits: depth + 1).dropLast().prefix(depth)
      return (group + folders).map(Substring.init)
    }
  }

  /// Nodes while they grow.
  private final class Branch {
    private var sum: Node
    private var below: [Substring: Branch] = [:]

    init(_ name: String) { sum = Node(name) }

    func add(_ places: ArraySlice<Substring>, _ byteCount: Int64, isMissing: Bool) {
      sum.fileCount += 1
      sum.add(byteCount)
      if isMissing { sum.missingCount += 1 }
      guard let first = places.first else { return }
      let child = below[first] ?? Branch(String(first))
      below[first] = child
      child.add(places.dropFirst(), byteCount, isMissing: isMissing)
    }

    var node: Node {
      var node = sum
      node.children = below.values.map(\.node).sorted {
        ($0.storedByteCount, $0.fileCount, $1.name) > ($1.storedByteCount, $1.fileCount, $0.name)
      }
      return node
    }
  }
}
