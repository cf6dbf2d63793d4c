import KeyhaulKit

/// The section about the files in the manifest, with a collapsed tree of domains and directories.
struct FileSection {
  private let backup: InspectionPage.BackupInfo

  init(_ backup: InspectionPage.BackupInfo) { self.backup = backup }

  /// The maximum number of domains, or of children of one node, in the tree. A real backup has hundreds of apps.
  static let maximumBranchCount = 100

  func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Its files")
      guard let files = backup.files else {
        page.element("p", "They are listed in \(backup.layout.displayName), which is encrypted with the password.")
        return
      }
      page.element("p", summary(of: files))
      guard !files.branches.isEmpty else { return }
      page.element("details") { page in
        page.element("summary", "By domain and folder, the largest first")
        page.element("div", ["class": "tree"]) { write(files.branches, to: &$0) }
      }
    }
  }

  private func summary(of files: InspectionPage.Files) -> String {
    let listing = files.listing
    let kinds = [
      HumanReadable.count(listing.fileCount, "file"),
      listing.directoryCount > 0 ? HumanReadable.count(listing.directoryCount, "folder") : nil,
      listing.linkCount > 0 ? HumanReadable.count(listing.linkCount, "link") : nil,
    ].compactMap(\.self)
    let domains = HumanReadable.count(listing.rowCountByDomain.count, "domain")
    var sentences = "\(backup.layout.displayName) lists \(HumanReadable.list(kinds)) in \(domains). "
    switch listing.missingCount {
    case 0: sentences += "None is missing."
    case 1: sentences += "1 of them is listed but not stored."
    default: sentences += "\(HumanReadable.grouped(listing.missingCount)) of them are listed but not stored."
    }
    if listing.inconsistentRowCount > 0 {
      sentences += " \(HumanReadable.count(listing.inconsistentRowCount, "entry", plural: "entries")) cannot be read."
    }
    return sentences
  }

  private func write(_ nodes: [DomainTree.Node], to page: inout HTMLWriter) {
    for node in nodes.prefix(Self.maximumBranchCount) {
      if node.children.isEmpty {
        page.element("div") { writeLine(of: node, to: &$0) }
      } else {
        page.element("details") { page in
          page.element("summary") { writeLine(of: node, to: &$0) }
          write(node.children, to: &page)
        }
      }
    }
    guard nodes.count > Self.maximumBranchCount else { return }
    let omitted = nodes.dropFirst(Self.maximumBranchCount)
    page.element("div") { page in
      page.text("\(HumanReadable.grouped(omitted.count)) more")
      writeSizes(of: DomainTree.Node(sumOf: omitted), to: &page)
    }
  }

  private func writeLine(of node: DomainTree.Node, to page: inout HTMLWriter) {
    if node.name.isEmpty { page.text("(no name)") } else { page.name(node.name) }
    writeSizes(of: node, to: &page)
  }

  private func writeSizes(of node: DomainTree.Node, to page: inout HTMLWriter) {
    page.text(" ")
    page.element("span") { page in
      if node.missingCount > 0 {
        page.element("b", ["class": "lost"], "\(HumanReadable.grouped(node.missingCount)) missing")
        page.text(" · ")
      }
      page.text("\(HumanReadable.count(node.fileCount, "file")), \(HumanReadable.bytes(node.storedByteCount))")
    }
  }
}
