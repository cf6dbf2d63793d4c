package import KeyhaulKit

/// The contents of a backup, with or without its password (`backup-inspection/1`).
package struct Inspection: Report {
  /// The parts of a backup that can be shown in full.
  package enum Part: String, CaseIterable, Sendable {
    case list, keybag, tree
  }

  package let name: String
  package let archive: BackupArchive
  /// The part that is shown in full; `nil` shows the overview.
  package let part: Part?
  /// The backup with its decrypted items; `nil` without the password.
  package let unlocked: UnlockedBackup?
  /// The other items of the source device, if it is available.
  package let sourceDeviceItems: SourceDeviceItems?
  package let files: StoredPayloads
  /// The counts of the manifest's files, including missing ones; `nil` if the manifest cannot be read.
  package let listing: FileList.Listing?
  /// The files by domain, the largest first; `nil` if the manifest cannot be read.
  package let domains: [FilesByDomain.Domain]?
  /// The files by directory; `nil` if they were not requested.
  package let tree: DomainTree?
  /// The list of all files, for `--tree` with `-v`; otherwise `nil`.
  let fileListing: FileListing?
  /// The estimated time for deriving the password's key on this machine; `nil` if the keybag does not contain the
  /// parameters.
  package let unlockTime: Duration?
  /// The measured time for deriving the password's key; `nil` if it was not derived.
  package let measuredUnlock: Duration?
  /// Whether a given password unwraps class keys, even if nothing else can be decrypted.
  package let hasMatchingPassword: Bool
  /// The anomalies that did not prevent the inspection.
  package let findings: [BackupFinding]

  /// Inspects a backup. Reads the manifest if it can be decrypted.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - name: The name that the user typed. Untrusted.
  ///   - unlocked: The backup with its decrypted items; `nil` without the password.
  ///   - sourceDeviceItems: The other items of the source device, if it is available.
  ///   - decryptionObstacle: The reason why the backup or a part of it cannot be decrypted, although the password is correct.
  ///   - part: The part to show in full; `nil` shows the overview.
  ///   - wantsTree: Whether to read the domains and directories.
  ///   - showsAll: Whether to list everything (`-v`).
  ///   - measured: The measured time for deriving the password's key; `nil` if it was not derived.
  ///   - isTimed: Whether to report durations on this machine, which differ in each run.
  ///   - hasMatchingPassword: Whether a given password unwraps class keys.
  ///   - clock: The clock for the estimate.
  /// - Throws: `.damaged` if the tree is requested and the manifest is damaged, or the error of reading the files.
  package init(
    _ archive: BackupArchive, named name: String, unlocked: UnlockedBackup?,
    sourceDeviceItems: SourceDeviceItems? = nil, decryptionObstacle: BackupFinding? = nil, part: Part?, wantsTree: Bool,
    showsAll: Bool, unlockedIn measured: Duration? = nil, isTimed: Bool = true, hasMatchingPassword: Bool = false,
    clock: some Clock<Duration> = ContinuousClock()
  ) throws(KeyhaulError) {
    self.name = name
    self.archive = archive
    self.part = part
    self.unlocked = unlocked
    self.sourceDeviceItems = sourceDeviceItems
    self.hasMatchingPassword = hasMatchingPassword
    let stored = try archive.storedFiles()
    files = stored
    var byDomain = FilesByDomain()
    let (fileList, listFinding) = try Self.fileList(of: archive, unlocked, isNeeded: wantsTree)
    if wantsTree, let fileList {
      let builder = DomainTree.Builder(stored: stored, depth: showsAll ? .max : 1)
      let namesFiles = part == .tree && showsAll
      var index = FilesByDirectory()
      listing = try fileList.listing(against: stored, only: .file) { (file, position) throws(KeyhaulError) in
        builder.add(file)
        byDomain.add(file, stored: stored)
        if namesFiles { index.add(file, at: position) }
      }
      tree = builder.tree
      fileListing = namesFiles ? FileListing(list: fileList, index: index, stored: files) : nil
    } else {
      listing = try fileList?.listing(against: stored, only: .file) { (file, _) throws(KeyhaulError) in
        byDomain.add(file, stored: stored)
      }
      tree = nil
      fileListing = nil
    }
    var findings = unlocked?.findings ?? archive.findings
    let moreFindings =
      (fileList?.findings ?? []) + [stored.finding, decryptionObstacle ?? listFinding].compactMap(\.self)
    for finding in moreFindings where !findings.contains(finding) { findings.append(finding) }
    self.findings = findings
    domains = fileList == nil ? nil : byDomain.largestFirst
    measuredUnlock = isTimed ? measured : nil
    unlockTime = !isTimed ? nil : try? archive.keybag.derivationParameters().estimatedDuration(by: clock)
  }

  /// Returns the manifest; `nil` if it is encrypted or cannot be read, with a finding if damage is the reason.
  ///
  /// - Throws: The error of reading the manifest, except damage if `isNeeded` is `false`.
  private static func fileList(
    of archive: BackupArchive, _ unlocked: UnlockedBackup?, isNeeded: Bool
  ) throws(KeyhaulError) -> (FileList?, BackupFinding?) {
    // Old backups with a password have an unencrypted manifest.
    guard unlocked == nil, !archive.isListEncrypted else { return (unlocked?.fileList, nil) }
    // The findings of the backup already contain the reason.
    guard !archive.findings.contains(where: { $0.kind == .listUnreadable }) else { return (nil, nil) }
    do throws(KeyhaulError) {
      return (try archive.fileList(), nil)
    } catch {
      guard !isNeeded, error.category == .damaged else { throw error }
      // Without Manifest.plist, which contains the key, an encrypted Manifest.db looks like a damaged one.
      let mayBeEncrypted = archive.isManifestUnreadable && archive.layout == .manifestDB
      let reason = mayBeEncrypted ? "\(error.reason), or it is encrypted" : error.reason
      return (nil, .listUnreadable(name: archive.layout.listName, reason: reason))
    }
  }

  package var streamedSection: (any StreamedSection)? { fileListing }

  package var json: JSONValue {
    InspectionDocument(
      archive, unlocked: unlocked, files: files, listing: listing, domains: domains, tree: tree,
      unlockTime: (unlockTime, measuredUnlock), listsItems: part == .list, showsTree: part == .tree,
      sourceDeviceItems: sourceDeviceItems,
      findings: findings
    ).json
  }

  /// The class keys that lack the device's key wrap; `nil` if none does.
  package var unbound: UnboundClassKeys? { archive.unboundClassKeys }
  /// Whether the items could be decrypted with a password.
  package var isUnlocked: Bool { unlocked != nil }
  /// The counts of the keychain's items; `nil` if there is no keychain to count.
  package var contents: BackupItemCounts? {
    archive.hasKeychain && unlocked?.hiddenKeychain == nil ? unlocked?.itemCounts : nil
  }

  /// Whether items are damaged, files are missing, or a finding means a loss.
  package var isPartlyUnreadable: Bool {
    unreadableCount > 0 || (listing?.missingCount ?? 0) > 0 || findings.contains(where: \.isLoss)
  }

  /// The number of damaged items.
  package var unreadableCount: Int { unlocked?.items.count { reason(of: $0)?.isDamage == true } ?? 0 }

  /// Returns the reason why an item cannot be decrypted; `nil` if it can.
  package func reason(of item: BackupItem) -> Reason? { unlocked?.reason(of: item) }
}

extension Inspection {
  /// Returns the table of items. A short table has the codes of protection classes, to leave more room for names.
  package func itemTable(_ unlocked: UnlockedBackup, isShort: Bool) -> Table {
    let items = unlocked.items
    // A column with the same value in every row would only leave less room for the names.
    let showsState = items.contains { reason(of: $0) != nil }
    let disambiguators = ItemText.disambiguators(items.lazy.map(\.item))
    let showsDistinctions = disambiguators.contains { !$0.isEmpty }
    return Table(
      [
        .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
        .init(ItemText.protectionTitle(isShort: isShort)),
      ] + (showsState ? [.init("STATE")] : [])
        + (showsDistinctions ? [.init(ItemText.distinctionTitle, flexible: true)] : []), count: items.count
    ) { position in
      let item = items[position]
      let name = item.item.map { ItemText.name(ItemDescriptor($0)) } ?? "(encrypted)"
      return [
        String(item.index), ItemText.kind(item.kind), name, ItemText.protection(item.protection, isShort: isShort),
      ] + (showsState ? [reason(of: item)?.rawValue ?? "readable"] : [])
        + (showsDistinctions ? [disambiguators[position]] : [])
    }
  }
}

extension Inspection {
  /// Returns the inspection as one HTML file.
  ///
  /// - Parameters:
  ///   - argument: The backup as a command-line argument; `nil` if it came from a stream.
  ///   - program: The name and version that the page states.
  package func page(argument: String?, program: String) -> InspectionPage {
    var backup = InspectionPage.BackupInfo(
      name: name, argument: argument, device: archive.device, made: archive.date,
      layout: archive.layout, digest: archive.digest, isEncrypted: archive.isEncrypted,
      hasKeychain: archive.hasKeychain, keybag: archive.keybag, storedFiles: (files.count, files.byteCount))
    backup.unlockTime = unlockTime
    backup.measuredUnlock = measuredUnlock
    backup.findings = findings
    backup.undecryptedItems = UndecryptedItems(unlocked).groups
    let about = BackupDetails(archive)
    backup.about = [about.device, about.origin(formatting: LongDateFormat.dateAndTime)]
    backup.sourceDeviceItems = sourceDeviceItems
    backup.apps = AppDirectory(installed: InstalledApps.names(in: archive))
    if let listing, let tree {
      backup.files = InspectionPage.Files(listing, branches: tree.root.children)
    }
    backup.hiddenKeychain = unlocked?.hiddenKeychain
    backup.items =
      backup.hiddenKeychain != nil ? nil : unlocked?.entries
    return InspectionPage(backup, program: program)
  }
}

extension Inspection {
  /// The maximum number of domains in the overview, unless all are requested.
  private static let defaultDomainLimit = 5

  /// Returns rows with the largest domains, each with the name of its app if the backup has it; none if there is only one
  /// domain.
  package func domainRows(_ showsAll: Bool, _ style: TextStyle) -> [(String, String)] {
    guard let domains, domains.count > 1 else { return [] }
    let apps = InstalledApps.names(in: archive)
    let shown = showsAll ? domains[...] : domains.prefix(Self.defaultDomainLimit)
    var texts = shown.map { domain in
      let app = domain.identifier.flatMap { identifier in
        apps[String(identifier)].flatMap { $0 == identifier ? nil : " (\($0))" }
      }
      let missing = domain.missingCount == 0 ? "" : ", \(HumanReadable.grouped(domain.missingCount)) missing"
      return "\(domain.name)\(app ?? ""): \(HumanReadable.count(domain.fileCount, "file")), "
        + "\(HumanReadable.bytes(domain.storedByteCount))\(missing)"
    }
    let hidden = domains.count - shown.count
    if hidden > 0 { texts.append("\(style.ellipsis) \(HumanReadable.grouped(hidden)) more (-v shows all)") }
    return texts.enumerated().map { ($0.offset == 0 ? "domains" : "", $0.element) }
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
    case .list?: itemLines(style) + blindSpotLines(style, showsAll)
    case .tree?: treeLines(style, showsAll)
    case nil: overview(style, showsAll)
    }
  }

  /// Returns the lines about items that are not in the backup; none if the backup has no keychain or is a remainder.
  private func blindSpotLines(_ style: TextStyle, _ showsAll: Bool) -> [String] {
    guard archive.hasKeychain, !archive.isPartial else { return [] }
    return (sourceDeviceItems?.lines(style: style, showsAll: showsAll) ?? []) + BackupBlindSpots.lines(style: style)
  }

  // MARK: The overview

  private static let labelColumns = 15
  /// The label of findings, whose text is already escaped.
  private static let findingLabel = "found"

  private func overview(_ style: TextStyle, _ showsAll: Bool) -> [String] {
    let size = "\(HumanReadable.count(files.count, "file")), \(HumanReadable.bytes(files.byteCount))"
    let escapedName = UntrustedText.escaped(name)
    let isNameWide = DisplayWidth.columns(of: escapedName) > Self.labelColumns
    let details = BackupDetails(archive)
    var rows: [(String, String)] = [
      (isNameWide ? "" : escapedName, "\(origin) · \(protectionText) · \(size)"), ("device", details.device),
      ("backup", details.origin(formatting: LocalTimeFormat.local)), ("files", filesText),
    ]
    rows += domainRows(showsAll, style)
    rows += [("keybag", keybagText(details)), ("keychain", keychainText)]
    if let contents { rows.append(("items", itemsText(contents))) }
    rows += findings.map { (Self.findingLabel, $0.description) }
    if let undecryptedText { rows.append(("encrypted", undecryptedText)) }
    var lines =
      boundText.map { WordWrap.lines(of: style.adapted(UntrustedText.escaped($0)), columns: style.width) } ?? []
    // A path that is wider than the labels gets its own line.
    if isNameWide { lines.append(escapedName) }
    lines += rows.flatMap { row in
      WordWrap.labeled(
        DisplayWidth.padded(row.0, columns: Self.labelColumns) + " ",
        UntrustedText.escaped(row.1, keepingEscapes: row.0 == Self.findingLabel),
        columns: max(style.width, Self.labelColumns + 40))
    }
    if unreadableCount > 0 {
      lines.append("\(HumanReadable.count(unreadableCount, "item")) cannot be read in this copy; --list shows which.")
    }
    lines += blindSpotLines(style, showsAll)
    if !isUnlocked, archive.hasKeychain, !archive.isPartial, archive.isEncrypted, !isKeybagUnusable {
      lines.append(
        hasMatchingPassword
          ? "The password is right: it unwraps class keys of the keybag."
          : "To list its items, add --password-file FILE.")
    }
    return lines
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
    let missing = listing.missingCount
    let absent = missing == 0 ? "none missing" : "\(HumanReadable.grouped(missing)) missing"
    return "listed in \(layout): \(HumanReadable.list(kinds)) in \(domains), \(absent)"
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

  private func treeLines(_ style: TextStyle, _ showsAll: Bool) -> [String] {
    guard let tree else { return [] }
    let hasMissing = tree.root.missingCount > 0
    var table = Table(
      [.init("DOMAIN", flexible: true), .init("FILES", rightAligned: true), .init("BYTES", rightAligned: true)]
        + (hasMissing ? [.init("MISSING", rightAligned: true)] : []))
    func row(_ name: String, _ node: DomainTree.Node) {
      table.add([
        name, HumanReadable.grouped(node.fileCount), HumanReadable.grouped(node.storedByteCount),
        HumanReadable.grouped(node.missingCount),
      ])
    }
    func add(_ children: [DomainTree.Node], indent: Int) {
      let space = String(repeating: " ", count: indent)
      let shown = showsAll ? children[...] : children.prefix(Self.defaultChildLimit)
      for node in shown {
        row(space + Self.unindented(node.name), node)
        add(node.children, indent: indent + 2)
      }
      let hidden = children.dropFirst(shown.count)
      if !hidden.isEmpty {
        row(
          "\(space)\(style.ellipsis) \(HumanReadable.grouped(hidden.count)) more (-v shows all)",
          DomainTree.Node(sumOf: hidden))
      }
    }
    add(tree.root.children, indent: 0)
    row("all", tree.root)
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
