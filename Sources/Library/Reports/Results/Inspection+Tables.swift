import KeyhaulKit

extension Inspection {
  // MARK: The keybag

  func keybagLines(_ style: TextStyle) -> [String] {
    let keybag = archive.keybag
    let fields = [
      "uuid        \(keybag.uuidText ?? "none")", "version     \(keybag.version.map(String.init) ?? "none")",
      "type        \(keybag.type.map { String($0.rawValue) } ?? "none")", "iterations  \(iterationsText)", "",
    ]
    var table = Table([
      .init("CLASS", rightAligned: true), .init("PROTECTS"), .init("WRAPPED WITH"), .init("KEY"),
    ])
    for record in keybag.classKeys {
      table.add([
        record.keyClass.map { String($0.rawValue) } ?? "?", record.purpose, record.wrapping, record.algorithm,
      ])
    }
    return fields + table.lines(style: style)
  }

  // MARK: The items

  func itemLines(_ style: TextStyle) -> [String] {
    if let failure = unlocked?.keychainReadFailure {
      return WordWrap.lines(
        of: style.adapted(
          UntrustedText.escaped("Its keychain cannot be read: \(failure.fact). Its contents are not known.")),
        columns: style.width)
    }
    guard let unlocked, archive.hasKeychain else { return ["The backup contains no keychain."] }
    // If names would be shortened, the table has the codes of protection classes instead.
    return itemTable(unlocked, isShort: false).lines(style: style) { itemTable(unlocked, isShort: true) }
  }

  // MARK: The files

  /// The maximum number of children of a domain or directory, unless all are requested.
  package static let defaultChildLimit = 10

  func treeLines(_ style: TextStyle, showsAll: Bool) -> [String] {
    guard let tree else { return [] }
    let hasMissing = tree.root.missingCount > 0
    var table = Table(
      [.init("DOMAIN", flexible: true), .init("FILES", rightAligned: true), .init("BYTES", rightAligned: true)]
        + (hasMissing ? [.init("MISSING", rightAligned: true)] : []))
    Self.addRows(of: tree.root.children, to: &table, indent: 0, ellipsis: style.ellipsis, showsAll: showsAll)
    table.add(Self.row(of: tree.root, name: "all"))
    let hint =
      showsAll || tree.root.fileCount == 0 ? [] : ["-v lists every file; export --domain D --path P exports one."]
    return table.lines(style: style) + hint
  }

  /// Adds the rows of nodes and of their children, and a row with the sum of the omitted nodes.
  private static func addRows(
    of nodes: [DomainTree.Node], to table: inout Table, indent: Int, ellipsis: String, showsAll: Bool
  ) {
    let indentation = String(repeating: " ", count: indent)
    let listedNodes = showsAll ? nodes[...] : nodes.prefix(defaultChildLimit)
    for node in listedNodes {
      table.add(row(of: node, name: indentation + quotedIfIndented(node.name)))
      addRows(of: node.children, to: &table, indent: indent + 2, ellipsis: ellipsis, showsAll: showsAll)
    }
    let omittedNodes = nodes.dropFirst(listedNodes.count)
    guard !omittedNodes.isEmpty else { return }
    let name = "\(indentation)\(ellipsis) \(HumanReadable.grouped(omittedNodes.count)) more (-v shows all)"
    table.add(row(of: DomainTree.Node(sumOf: omittedNodes), name: name))
  }

  private static func row(of node: DomainTree.Node, name: String) -> [String] {
    [
      name, HumanReadable.grouped(node.fileCount), HumanReadable.grouped(node.storedByteCount),
      HumanReadable.grouped(node.missingCount),
    ]
  }

  /// Returns a name in quotation marks if it is empty or begins with spaces, which look like indentation.
  private static func quotedIfIndented(_ name: String) -> String {
    let spaces = name.prefix { $0 == " " }.count
    guard spaces > 0 || name.isEmpty else { return name }
    return "\"" + name + "\""
  }
}
