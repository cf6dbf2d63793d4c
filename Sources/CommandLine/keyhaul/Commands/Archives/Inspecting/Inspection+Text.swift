import KeyhaulKit
import Reports

extension Inspection {
  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    switch part {
    case .keybag?: keybagLines(style)
    case .list?: itemLines(style) + unseenLines(style, showsAll)
    case .tree?: treeLines(style, showsAll)
    case nil: overview(style, showsAll)
    }
  }

  /// Nothing where there is no keychain that anybody could take for the whole.
  private func unseenLines(_ style: TextStyle, _ showsAll: Bool) -> [String] {
    guard archive.hasKeychain, !archive.isRemainder else { return [] }
    return (maker?.lines(style: style, showsAll: showsAll) ?? []) + UnseenItems.lines(style: style)
  }

  // MARK: The overview

  private static let labelColumns = 15
  /// A finding names what it found, escaped already.
  private static let findingLabel = "found"

  private func overview(_ style: TextStyle, _ showsAll: Bool) -> [String] {
    let state =
      archive.isManifestUnreadable
      ? "it is not known whether it has a password"
      : archive.isManifestMissing
        ? "no Manifest.plist, \(archive.areFilesEncrypted ? "encrypted" : "unencrypted") files"
        : archive.areFilesEncrypted
          ? "encrypted" : archive.isEncrypted ? "unencrypted files, items under a password" : "no password"
    let size = "\(Amounts.count(files.count, "file")), \(Amounts.bytes(files.byteCount))"
    let classes = archive.keybag.classKeys.count
    let shownName = HostileText.shown(name)
    let isNameWide = DisplayWidth.columns(of: shownName) > Self.labelColumns
    let facts = BackupFacts(archive)
    var rows: [(String, String)] = [
      (isNameWide ? "" : shownName, "\(origin) · \(state) · \(size)"), ("device", facts.device),
      ("backup", facts.making(TimeText.local)), ("files", filesText),
    ]
    rows += domainRows(showsAll, style)
    rows += [
      (
        "keybag",
        archive.isManifestUnreadable
          ? "unreadable, like Manifest.plist"
          : archive.isManifestMissing
            ? "missing, like Manifest.plist"
            : "version \(archive.keybag.version.map(String.init) ?? "?"), \(keybagKind), "
              + "\(Amounts.count(classes, "class key")) · \(facts.classes) · \(roundsText)"
      ),
      ("keychain", keychainText),
    ]
    if let contents { rows.append(("items", itemsText(contents))) }
    rows += findings.map { (Self.findingLabel, $0.description) }
    if let sealedText { rows.append(("sealed", sealedText)) }
    var lines = boundText.map { WordWrap.lines(of: style.adapted(HostileText.shown($0)), columns: style.width) } ?? []
    // A path is mostly longer than the labels are wide: it stands above them, whole.
    if isNameWide { lines.append(shownName) }
    lines += rows.flatMap { row in
      WordWrap.labeled(
        DisplayWidth.padded(row.0, columns: Self.labelColumns) + " ",
        HostileText.shown(row.1, keepingEscapes: row.0 == Self.findingLabel),
        columns: max(style.width, Self.labelColumns + 40))
    }
    if unreadableCount > 0 {
      lines.append("\(Amounts.count(unreadableCount, "item")) cannot be read in this copy; --list shows which.")
    }
    lines += unseenLines(style, showsAll)
    if !isUnlocked, archive.hasKeychain, !archive.isRemainder, archive.isEncrypted, !isKeybagUnusable {
      lines.append(
        hasFittingPassword
          ? "The password is right: it unwraps class keys of the keybag." : "Add --password-file to see what is in it.")
    }
    return lines
  }

  /// "made 2026-11-20 18:04 by old-phone (iPhone15,2, iOS 18.1)"
  private var origin: String {
    let device = archive.device
    let made = archive.date.map { "made \(TimeText.local($0)) by " } ?? "made by "
    let model = [device.productType, device.productVersion.map { "iOS \($0)" }].compactMap(\.self).joined(
      separator: ", ")
    return made + (device.name ?? "an unnamed device") + (model.isEmpty ? "" : " (\(model))")
  }

  /// "listed in Manifest.db: 12 files, 3 folders in 2 domains, none missing"
  private var filesText: String {
    let layout = archive.layout.words
    guard let listing else {
      return "listed in \(layout), " + (findings.contains { $0.kind == .listUnreadable } ? "unreadable" : "sealed")
    }
    var kinds = [Amounts.count(listing.fileCount, "file")]
    if listing.directoryCount > 0 { kinds.append(Amounts.count(listing.directoryCount, "folder")) }
    if listing.linkCount > 0 { kinds.append(Amounts.count(listing.linkCount, "link")) }
    if listing.unreadableRowCount > 0 { kinds.append("\(Amounts.grouped(listing.unreadableRowCount)) unreadable") }
    let domains = Amounts.count(listing.rowCountByDomain.count, "domain")
    let missing = listing.missingCount
    let absent = missing == 0 ? "none missing" : "\(Amounts.grouped(missing)) missing"
    return "listed in \(layout): \(Amounts.list(kinds)) in \(domains), \(absent)"
  }

  private var keybagKind: String {
    switch archive.keybag.type {
    case .backup?: "backup"
    case let type?: "type \(type.rawValue)"
    case nil: "no type"
    }
  }

  var roundsText: String {
    let estimate = unlockTime.map { ", \(Amounts.estimate($0)) on this machine" } ?? ""
    let measured = measuredUnlock.map { time in
      ", unlocked in \(Amounts.estimate(time).replacing("about ", with: "")) on this machine"
    }
    return archive.keybag.roundsWords + (measured ?? estimate)
  }

  /// The sentence that matters: where this keychain can go.
  private var keychainText: String {
    if archive.isRemainder {
      return archive.hasKeychain
        ? "its file is stored; its contents are not known" : "its file is not stored"
    }
    if let hidden = opened?.hiddenKeychain { return "cannot be read: \(hidden.fact). Its contents are not known." }
    guard archive.hasKeychain else {
      return archive.isEncrypted && !isUnlocked
        ? "its file is missing; the manifest shows, with the password, whether there should be one"
        : "none in this backup"
    }
    if let unbound, unbound.isRefused {
      return "present, but not trustworthy: \(unbound.fact). As a result, \(unbound.meaning); they cannot be restored."
    }
    if let contents, contents.secretOnly > 0, contents.secretOnly == contents.total {
      return "present. Its items are secrets without names, as iOS 4 stored them. They cannot be restored, but "
        + "\"export --reveal\" saves them."
    }
    if findings.contains(.decryptedCopy) {
      return "present. A decrypted copy cannot be restored; use the backup that it was made from."
    }
    if isKeybagUnusable {
      return "present, but encrypted: its keybag is unusable, so no item can be decrypted anywhere."
    }
    let maker = archive.device.name ?? "the source device"
    guard archive.isEncrypted else {
      return "present. The backup has no password, so its items can go back only to \(maker)."
    }
    let seal = isUnlocked ? "present" : "present, encrypted"
    if let unbound {
      return "\(seal), but no device writes such a keychain: \(unbound.fact). As a result, \(unbound.meaning), like "
        + "migratable items."
    }
    return "\(seal). With the password its items can go to any device; its this-device-only items can go only back to "
      + "\(maker)."
  }

  private func itemsText(_ contents: ArchiveContents) -> String {
    let kinds = ItemKind.allCases.compactMap { kind in
      contents.countByKind[kind].map { count in
        switch kind {
        case .genericPassword, .internetPassword: "\(Amounts.grouped(count)) \(ItemText.kind(kind))"
        case .certificate, .key: Amounts.count(count, ItemText.kind(kind))
        }
      }
    }
    guard !kinds.isEmpty else { return "none" }
    let open = ProtectionClass.allCases.filter { unbound?.contains($0) == true }
    let openCount = open.reduce(0) { $0 + contents.countByProtection[$1, default: 0] }
    let free = Amounts.grouped(contents.migratable + (archive.isEncrypted ? openCount : 0))
    var reach =
      isKeybagUnusable
      ? "none can be restored from this copy"
      : archive.isEncrypted
        ? "\(free) any device, \(Amounts.grouped(contents.thisDeviceOnly - openCount)) this device only"
        : unbound == nil
          ? "with a password \(free) could go to any device" : "\(Amounts.grouped(openCount)) that anyone can decrypt"
    if contents.secretOnly > 0 { reach += ", \(Amounts.grouped(contents.secretOnly)) nowhere" }
    return "\(Amounts.count(contents.total, "item")): \(kinds.joined(separator: ", ")) · \(reach)"
  }

  // MARK: The keybag

  private func keybagLines(_ style: TextStyle) -> [String] {
    let keybag = archive.keybag
    let head = [
      "uuid      \(keybag.uuidText ?? "none")", "version   \(keybag.version.map(String.init) ?? "none")",
      "type      \(keybag.type.map { String($0.rawValue) } ?? "none")", "iterations \(roundsText)", "",
    ]
    var table = Table([
      .init("CLASS", rightAligned: true), .init("PROTECTS"), .init("WRAPPED WITH"), .init("KEY"),
    ])
    for record in keybag.classKeys {
      table.add([
        record.keyClass.map { String($0.rawValue) } ?? "?", record.purpose, record.wrapping, record.algorithm,
      ])
    }
    return head + table.lines(style: style)
  }

  // MARK: The items

  private func itemLines(_ style: TextStyle) -> [String] {
    if let hidden = opened?.hiddenKeychain {
      return WordWrap.lines(
        of: style.adapted(
          HostileText.shown("Its keychain cannot be read: \(hidden.fact). Its contents are not known.")),
        columns: style.width)
    }
    guard let opened, archive.hasKeychain else { return ["The backup contains no keychain."] }
    // Where names would be cut, classes go by their codes.
    return itemTable(opened, isShort: false).lines(style: style) { itemTable(opened, isShort: true) }
  }

  // MARK: The files

  /// The most children of a domain or directory that are shown unless all are asked for.
  static let shortBranch = 10

  private func treeLines(_ style: TextStyle, _ showsAll: Bool) -> [String] {
    guard let tree else { return [] }
    let hasMissing = tree.root.missingCount > 0
    var table = Table(
      [.init("DOMAIN", flexible: true), .init("FILES", rightAligned: true), .init("BYTES", rightAligned: true)]
        + (hasMissing ? [.init("MISSING", rightAligned: true)] : []))
    func row(_ name: String, _ node: DomainTree.Node) {
      table.add([
        name, Amounts.grouped(node.fileCount), Amounts.grouped(node.storedByteCount),
        Amounts.grouped(node.missingCount),
      ])
    }
    func add(_ children: [DomainTree.Node], indent: Int) {
      let space = String(repeating: " ", count: indent)
      let shown = showsAll ? children[...] : children.prefix(Self.shortBranch)
      for node in shown {
        row(space + Self.unindented(node.name), node)
        add(node.children, indent: indent + 2)
      }
      let rest = children.dropFirst(shown.count)
      if !rest.isEmpty {
        row(
          "\(space)\(style.ellipsis) \(Amounts.grouped(rest.count)) more (-v shows all)", DomainTree.Node(sumOf: rest))
      }
    }
    add(tree.root.children, indent: 0)
    row("all", tree.root)
    let hint =
      showsAll || tree.root.fileCount == 0 ? [] : ["-v lists every file; export --domain D --path P exports one."]
    return table.lines(style: style) + hint
  }

  /// A name that begins with spaces would look like one of a deeper level.
  private static func unindented(_ name: String) -> String {
    let spaces = name.prefix { $0 == " " }.count
    guard spaces > 0 || name.isEmpty else { return name }
    return "\"" + name + "\""
  }
}
