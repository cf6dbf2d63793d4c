import Backups
import Basics
import KeychainFormats
import Testing

@Suite("Backup files as a tree")
struct DomainTreeTests {
  private func tree(_ files: [EditableBackup.File], depth: Int = 1) throws -> DomainTree {
    let backup = try EditableBackup(hasPassword: false, files: files, hasKeychain: false)
    let archive = try backup.open()
    // The backup deletes its directory when it is released.
    return try withExtendedLifetime(backup) {
      let builder = DomainTree.Builder(stored: try archive.storedFiles(), depth: depth)
      try archive.fileList().forEachFile { (file) throws(KeyhaulError) in builder.add(file) }
      return builder.tree
    }
  }

  private func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }

  @Test("Domains are sorted by size, and those of apps are grouped by their prefix")
  func domains() throws {
    let root = try tree([
      .init("a.txt", bytes(10)), .init("Library/b.txt", bytes(5)),
      .init("Documents/c.txt", bytes(100), domain: "AppDomain-org.example.app"),
      .init("d.txt", bytes(1), domain: "AppDomain-net.example-two"),
    ]).root
    #expect(root.fileCount == 4 && root.storedByteCount == 116 && root.missingCount == 0)
    #expect(root.children.map(\.name) == ["AppDomain", "HomeDomain"])
    let apps = try #require(root.children.first)
    #expect(apps.storedByteCount == 101 && apps.children.map(\.name) == ["org.example.app", "net.example-two"])
    #expect(apps.children.first?.children.map(\.name) == ["Documents"])
    let home = try #require(root.children.last)
    #expect(home.fileCount == 2 && home.children.map(\.name) == ["Library"] && home.children.first?.fileCount == 1)
  }

  @Test(
    "The depth of the tree is the requested one, up to the limit", arguments: [1, 3, DomainTree.maximumDepth, .max])
  func depth(requested: Int) throws {
    let directories = (0..<DomainTree.maximumDepth + 5).map { "f\($0)" }.joined(separator: "/")
    var node = try #require(tree([.init(directories + "/file", [1])], depth: requested).root.children.first)
    var depth = 0
    while let child = node.children.first {
      node = child
      depth += 1
    }
    #expect(depth == min(requested, DomainTree.maximumDepth))
  }

  @Test("Each file is counted in the directory that contains it, in any order of the manifest")
  func directories() throws {
    let root = try tree([
      .init("Library/a", bytes(1)), .init("Library/b", bytes(2)), .init("Library2/c", bytes(4)), .init("d", bytes(8)),
      .init("Library/e", bytes(16)), .init("Library/e", bytes(32), domain: "MediaDomain"),
      .init("Library/x/f", bytes(64)),
    ]).root
    #expect(root.children.map(\.name) == ["HomeDomain", "MediaDomain"])
    let (home, media) = (root.children[0], root.children[1])
    func sizes(of domain: DomainTree.Node) -> [String: Int64] {
      Dictionary(uniqueKeysWithValues: domain.children.map { ($0.name, $0.storedByteCount) })
    }
    #expect(home.storedByteCount == 95)
    #expect(sizes(of: home) == ["Library": 83, "Library2": 4])
    #expect(sizes(of: media) == ["Library": 32])
  }

  @Test("Missing files are counted, but empty ones are not")
  func missingFiles() throws {
    var missingFile = EditableBackup.File("Library/gone.txt", bytes(3))
    missingFile.isStored = false
    var empty = EditableBackup.File("empty.txt", [])
    empty.isStored = false
    let root = try tree([missingFile, empty, .init("there.txt", bytes(2))]).root
    #expect(root.fileCount == 3 && root.missingCount == 1 && root.storedByteCount == 2)
    #expect(root.children.first?.children.first?.missingCount == 1)
  }

  @Test("Files are grouped by domain and directory, in any order of the manifest")
  func filesByDirectory() throws {
    let backup = try EditableBackup(
      hasPassword: false,
      files: [
        .init("b/z", [1]), .init("top", [1]), .init("Documents/c", [1], domain: "AppDomain-org.example.app"),
        .init("b/a", [1]), .init("a/b/deep", [1]),
      ], hasKeychain: false)
    let fileList = try backup.open().fileList()
    var index = FilesByDirectory()
    _ = try fileList.listing { (file, location) throws(KeyhaulError) in index.add(file, at: location) }
    let reader = try fileList.reader()
    let names = try index.inOrder.map { location in try reader.file(at: location)?.relativePath }
    // Within a domain, the files at its top level come first. Files of a directory are in the manifest's order.
    #expect(names == ["Documents/c", "top", "a/b/deep", "b/z", "b/a"])
  }

  @Test("The sums of sizes do not overflow")
  func sums() throws {
    var largeNode = DomainTree.Node(sumOf: [])
    largeNode.storedByteCount = .max
    #expect(DomainTree.Node(sumOf: [largeNode, largeNode]).storedByteCount == .max)
  }
}
