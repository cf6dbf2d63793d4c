package import KeyhaulKit

extension Inspection {
  /// The maximum number of domains in the overview, unless all are requested.
  private static let defaultDomainLimit = 5

  /// Returns rows with the largest domains, each with the name of its app if the backup has it; none if there is only one
  /// domain.
  private func domainRows(_ style: TextStyle, showsAll: Bool) -> [OverviewRow] {
    guard let domains, domains.count > 1 else { return [] }
    let apps = InstalledApps.names(in: archive)
    let listedDomains = showsAll ? domains[...] : domains.prefix(Self.defaultDomainLimit)
    var texts = listedDomains.map { domain in
      let app = domain.identifier.flatMap { identifier in
        apps[String(identifier)].flatMap { $0 == identifier ? nil : " (\($0))" }
      }
      let missing = domain.missingCount == 0 ? "" : ", \(HumanReadable.grouped(domain.missingCount)) missing"
      return "\(domain.name)\(app ?? ""): \(HumanReadable.count(domain.fileCount, "file")), "
        + "\(HumanReadable.bytes(domain.storedByteCount))\(missing)"
    }
    let omittedCount = domains.count - listedDomains.count
    if omittedCount > 0 {
      texts.append("\(style.ellipsis) \(HumanReadable.grouped(omittedCount)) more (-v shows all)")
    }
    return texts.enumerated().map { index, text in OverviewRow(label: index == 0 ? "domains" : "", text: text) }
  }

  /// Whether no item can be decrypted on any device.
  package var isKeybagUnusable: Bool { findings.contains(where: \.preventsReadingKeybag) }

  /// The sentence about items that only the source device can restore: "Most of its items (14 of 18) are this-device-only:
  /// …"; `nil` if most items can move.
  package var boundText: String? {
    guard let contents, contents.total > 0, unbound == nil else { return nil }
    let sourceName = archive.device.name ?? "the source device"
    let total = HumanReadable.count(contents.total, "item")
    if isKeybagUnusable { return "Its keybag is unusable: none of its \(total) can be decrypted, on any device." }
    guard archive.isEncrypted else {
      return contents.secretOnly > 0 ? nil : "No password: its \(total) can be restored only to \(sourceName)."
    }
    guard contents.thisDeviceOnly * 2 > contents.total else { return nil }
    let count = HumanReadable.grouped(contents.thisDeviceOnly)
    let verb = contents.thisDeviceOnly == 1 ? "is" : "are"
    return contents.thisDeviceOnly == contents.total
      ? "All of its items (\(count)) \(verb) this-device-only: only \(sourceName) can restore them."
      : "Most of its items (\(count) of \(total)) \(verb) this-device-only: only \(sourceName) can restore them."
  }

  /// The items that cannot be decrypted, for each reason: "3 device-bound: 2 generic (when unlocked, this device), 1 key
  /// (…)"; `nil` if all can. Their names and access groups are encrypted too.
  package var undecryptedText: String? {
    let groups = UndecryptedItems(unlocked).groups
    guard !groups.isEmpty else { return nil }
    return Reason.allCases.compactMap { reason in
      let matching = groups.filter { $0.reason == reason }
      guard !matching.isEmpty else { return nil }
      let parts = matching.map { group in
        "\(HumanReadable.grouped(group.count)) \(ItemText.kind(group.kind)) (\(ItemText.protection(group.protection)))"
      }
      let count = matching.reduce(0) { $0 + $1.count }
      return "\(HumanReadable.grouped(count)) \(reason.rawValue): \(parts.joined(separator: ", "))"
    }.joined(separator: "; ")
  }
}

extension Inspection {
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    switch part {
    case .keybag?: keybagLines(style)
    case .list?: itemLines(style) + blindSpotLines(style, showsAll: showsAll)
    case .tree?: treeLines(style, showsAll: showsAll)
    case nil: overview(style, showsAll: showsAll)
    }
  }

  /// Returns the lines about items that are not in the backup; none if the backup has no keychain or is incomplete.
  private func blindSpotLines(_ style: TextStyle, showsAll: Bool) -> [String] {
    guard archive.hasKeychain, !archive.isPartial else { return [] }
    return (sourceDeviceItems?.lines(style: style, showsAll: showsAll) ?? []) + BackupBlindSpots.lines(style: style)
  }

  // MARK: The overview

  private static let labelColumns = 15
  private static let minimumTextColumns = 40

  private struct OverviewRow {
    let label: String
    let text: String
    /// Whether the names in the text are already escaped.
    var isEscaped = false
  }

  private func overview(_ style: TextStyle, showsAll: Bool) -> [String] {
    let escapedName = UntrustedText.escaped(name)
    let isNameWide = DisplayWidth.columns(of: escapedName) > Self.labelColumns
    let rows = overviewRows(style, firstLabel: isNameWide ? "" : escapedName, showsAll: showsAll)
    var lines =
      boundText.map { WordWrap.lines(of: style.adapted(UntrustedText.escaped($0)), columns: style.width) } ?? []
    // A path that is wider than the labels gets its own line.
    if isNameWide { lines.append(escapedName) }
    lines += rows.flatMap { row in
      WordWrap.labeled(
        DisplayWidth.padded(row.label, columns: Self.labelColumns) + " ",
        UntrustedText.escaped(row.text, keepingEscapes: row.isEscaped),
        columns: max(style.width, Self.labelColumns + Self.minimumTextColumns))
    }
    if unreadableCount > 0 {
      lines.append("\(HumanReadable.count(unreadableCount, "item")) cannot be read in this copy; --list shows which.")
    }
    lines += blindSpotLines(style, showsAll: showsAll)
    if !isUnlocked, archive.hasKeychain, !archive.isPartial, archive.isEncrypted, !isKeybagUnusable {
      lines.append(
        hasMatchingPassword
          ? "The password is right: it unwraps class keys of the keybag."
          : "To list its items, add --password-file FILE.")
    }
    return lines
  }

  private func overviewRows(_ style: TextStyle, firstLabel: String, showsAll: Bool) -> [OverviewRow] {
    let size = "\(HumanReadable.count(files.count, "file")), \(HumanReadable.bytes(files.byteCount))"
    let details = BackupDetails(archive)
    var rows = [
      OverviewRow(label: firstLabel, text: "\(origin) · \(protectionText) · \(size)"),
      OverviewRow(label: "device", text: details.device),
      OverviewRow(label: "backup", text: details.origin(formatting: LocalTimeFormat.local)),
      OverviewRow(label: "files", text: filesText),
    ]
    rows += domainRows(style, showsAll: showsAll)
    rows.append(OverviewRow(label: "keybag", text: keybagText(details)))
    rows.append(OverviewRow(label: "keychain", text: keychainText))
    if let contents { rows.append(OverviewRow(label: "items", text: itemsText(contents))) }
    rows += findings.map { OverviewRow(label: "found", text: $0.description, isEscaped: true) }
    if let undecryptedText { rows.append(OverviewRow(label: "encrypted", text: undecryptedText)) }
    return rows
  }

  private var protectionText: String {
    if archive.isManifestUnreadable { return "it is not known whether it has a password" }
    if archive.isManifestMissing {
      return "no Manifest.plist, \(archive.areFilesEncrypted ? "encrypted" : "unencrypted") files"
    }
    if archive.areFilesEncrypted { return "encrypted" }
    return archive.isEncrypted ? "unencrypted files, password-protected items" : "no password"
  }

  private func keybagText(_ details: BackupDetails) -> String {
    if archive.isManifestUnreadable { return "unreadable, like Manifest.plist" }
    if archive.isManifestMissing { return "missing, like Manifest.plist" }
    return "version \(archive.keybag.version.map(String.init) ?? "?"), \(keybagKind), "
      + "\(HumanReadable.count(archive.keybag.classKeys.count, "class key")) · \(details.classes) · \(iterationsText)"
  }

  /// The origin of the backup: "made 2026-11-20 18:04 by old-phone (iPhone15,2, iOS 18.1)".
  private var origin: String {
    let device = archive.device
    let made = archive.date.map { "made \(LocalTimeFormat.local($0)) by " } ?? "made by "
    let model = [device.productType, device.productVersion.map { "iOS \($0)" }].compactMap(\.self).joined(
      separator: ", ")
    return made + (device.name ?? "an unnamed device") + (model.isEmpty ? "" : " (\(model))")
  }

  /// The counts of the manifest's files: "listed in Manifest.db: 12 files, 3 folders in 2 domains, none missing".
  private var filesText: String {
    let layout = archive.layout.displayName
    guard let listing else {
      return "listed in \(layout), " + (findings.contains { $0.kind == .listUnreadable } ? "unreadable" : "encrypted")
    }
    var kinds = [HumanReadable.count(listing.fileCount, "file")]
    if listing.directoryCount > 0 { kinds.append(HumanReadable.count(listing.directoryCount, "folder")) }
    if listing.linkCount > 0 { kinds.append(HumanReadable.count(listing.linkCount, "link")) }
    if listing.inconsistentRowCount > 0 {
      kinds.append("\(HumanReadable.grouped(listing.inconsistentRowCount)) unreadable")
    }
    let domains = HumanReadable.count(listing.rowCountByDomain.count, "domain")
    let missing = listing.missingCount == 0 ? "none" : HumanReadable.grouped(listing.missingCount)
    return "listed in \(layout): \(HumanReadable.list(kinds)) in \(domains), \(missing) missing"
  }

  private var keybagKind: String {
    switch archive.keybag.type {
    case .backup?: "backup"
    case let type?: "type \(type.rawValue)"
    case nil: "no type"
    }
  }

  package var iterationsText: String {
    let estimate = unlockTime.map { ", \(HumanReadable.estimate($0)) per guess on this machine" } ?? ""
    let measured = measuredUnlock.map { time in
      ", unlocked in \(HumanReadable.estimate(time).replacing("about ", with: "")) on this machine"
    }
    return archive.keybag.iterationsText + (measured ?? estimate)
  }

  /// The sentences about the keychain: whether it is readable, and the devices that it can be restored to.
  private var keychainText: String {
    if archive.isPartial {
      return archive.hasKeychain
        ? "its file is stored; its contents are not known" : "its file is not stored"
    }
    if let hidden = unlocked?.hiddenKeychain { return "cannot be read: \(hidden.fact). Its contents are not known." }
    guard archive.hasKeychain else {
      return archive.isEncrypted && !isUnlocked
        ? "its file is missing; with the password, the manifest shows whether there should be one"
        : "none in this backup"
    }
    if let unbound, unbound.blocksRestore {
      return
        "present, but not trustworthy: \(unbound.summary). As a result, \(unbound.consequence). They cannot be restored."
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
    let sourceName = archive.device.name ?? "the source device"
    guard archive.isEncrypted else {
      return "present. The backup has no password, so its items can be restored only to \(sourceName)."
    }
    let presence = isUnlocked ? "present" : "present, encrypted"
    if let unbound {
      return
        "\(presence), but no device writes such a keychain: \(unbound.summary). As a result, \(unbound.consequence), like "
        + "migratable items."
    }
    return
      "\(presence). With the password, its items can move to any device; this-device-only items can be restored only "
      + "to \(sourceName)."
  }

  private func itemsText(_ contents: BackupItemCounts) -> String {
    let kinds = ItemKind.allCases.compactMap { kind in
      contents.countByKind[kind].map { count in
        switch kind {
        case .genericPassword, .internetPassword: "\(HumanReadable.grouped(count)) \(ItemText.kind(kind))"
        case .certificate, .key: HumanReadable.count(count, ItemText.kind(kind))
        }
      }
    }
    guard !kinds.isEmpty else { return "none" }
    let unprotectedClasses = ProtectionClass.allCases.filter { unbound?.contains($0) == true }
    let unprotectedCount = unprotectedClasses.reduce(0) { $0 + contents.countByProtection[$1, default: 0] }
    let portableCount = HumanReadable.grouped(contents.migratable + (archive.isEncrypted ? unprotectedCount : 0))
    var availability: String
    if isKeybagUnusable {
      availability = "none can be restored from this copy"
    } else if archive.isEncrypted {
      let boundCount = HumanReadable.grouped(contents.thisDeviceOnly - unprotectedCount)
      availability = "\(portableCount) any device, \(boundCount) this device only"
    } else if unbound == nil {
      availability = "with a password, \(portableCount) could go to any device"
    } else {
      availability = "\(HumanReadable.grouped(unprotectedCount)) that anyone can decrypt"
    }
    if contents.secretOnly > 0 { availability += ", \(HumanReadable.grouped(contents.secretOnly)) nowhere" }
    return "\(HumanReadable.count(contents.total, "item")): \(kinds.joined(separator: ", ")) · \(availability)"
  }

  // MARK: The keybag

  private func keybagLines(_ style: TextStyle) -> [String] {
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

  private func itemLines(_ style: TextStyle) -> [String] {
    if let hidden = unlocked?.hiddenKeychain {
      return WordWrap.lines(
        of: style.adapted(
          UntrustedText.escaped("Its keychain cannot be read: \(hidden.fact). Its contents are not known.")),
        columns: style.width)
    }
    guard let unlocked, archive.hasKeychain else { return ["The backup contains no keychain."] }
    // If names would be shortened, the table has the codes of protection classes instead.
    return itemTable(unlocked, isShort: false).lines(style: style) { itemTable(unlocked, isShort: true) }
  }

  // MARK: The files

  /// The maximum number of children of a domain or directory, unless all are requested.
  package static let defaultChildLimit = 10

  private func treeLines(_ style: TextStyle, showsAll: Bool) -> [String] {
    guard let tree else { return [] }
    let hasMissing = tree.root.missingCount > 0
    var table = Table(
      [.init("DOMAIN", flexible: true), .init("FILES", rightAligned: true), .init("BYTES", rightAligned: true)]
        + (hasMissing ? [.init("MISSING", rightAligned: true)] : []))
    func addRow(_ name: String, _ node: DomainTree.Node) {
      table.add([
        name, HumanReadable.grouped(node.fileCount), HumanReadable.grouped(node.storedByteCount),
        HumanReadable.grouped(node.missingCount),
      ])
    }
    func addRows(_ nodes: [DomainTree.Node], indent: Int) {
      let indentation = String(repeating: " ", count: indent)
      let listedNodes = showsAll ? nodes[...] : nodes.prefix(Self.defaultChildLimit)
      for node in listedNodes {
        addRow(indentation + Self.unindented(node.name), node)
        addRows(node.children, indent: indent + 2)
      }
      let omittedNodes = nodes.dropFirst(listedNodes.count)
      if !omittedNodes.isEmpty {
        addRow(
          "\(indentation)\(style.ellipsis) \(HumanReadable.grouped(omittedNodes.count)) more (-v shows all)",
          DomainTree.Node(sumOf: omittedNodes))
      }
    }
    addRows(tree.root.children, indent: 0)
    addRow("all", tree.root)
    let hint =
      showsAll || tree.root.fileCount == 0 ? [] : ["-v lists every file; export --domain D --path P exports one."]
    return table.lines(style: style) + hint
  }

  /// Returns a name in quotation marks if it is empty or begins with spaces, which look like indentation.
  private static func unindented(_ name: String) -> String {
    let spaces = name.prefix { $0 == " " }.count
    guard spaces > 0 || name.isEmpty else { return name }
    return "\"" + name + "\""
  }
}
