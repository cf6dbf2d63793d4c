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
  /// The items of the source device that are not in the backup; `nil` if the device is not available.
  package let sourceDeviceItems: SourceDeviceItems?
  package let files: StoredPayloads
  /// The counts of the manifest's files, including missing ones; `nil` if the manifest cannot be read.
  package let listing: FileList.Listing?
  /// The files by domain, the largest first; `nil` if the manifest cannot be read.
  package let domains: [FilesByDomain.Domain]?
  /// The files by directory; `nil` if they were not requested, or if the manifest cannot be read.
  package let tree: DomainTree?
  /// The list of all files, for `--tree` with `-v`; otherwise `nil`.
  let fileListing: FileListing?
  /// The estimated time to derive the key from the password on this machine; `nil` if the keybag does not contain the
  /// parameters, or if times are not reported.
  package let unlockTime: Duration?
  /// The measured time to derive the key from the password; `nil` if no key was derived, or if times are not reported.
  package let measuredUnlock: Duration?
  /// Whether a given password unwraps class keys, even if nothing else can be decrypted.
  package let hasMatchingPassword: Bool
  /// The findings that did not prevent the inspection.
  package let findings: [BackupFinding]

  /// Inspects a backup. Reads the manifest if it can be decrypted.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - name: The name that the user typed. Untrusted.
  ///   - unlocked: The backup with its decrypted items; `nil` without the password.
  ///   - sourceDeviceItems: The items of the source device that are not in the backup; `nil` if the device is not
  ///     available.
  ///   - decryptionObstacle: The reason why the backup or a part of it cannot be decrypted, although the password is correct.
  ///   - part: The part to show in full; `nil` shows the overview.
  ///   - wantsTree: Whether to read the domains and directories.
  ///   - showsAll: Whether to list everything (`-v`).
  ///   - measured: The measured time to derive the key from the password; `nil` if no key was derived.
  ///   - isTimed: Whether to report durations on this machine, which differ in each run.
  ///   - hasMatchingPassword: Whether a given password unwraps class keys.
  ///   - clock: The clock for the estimate.
  /// - Throws: `.damaged` if the tree is requested and the manifest is damaged, or the error of a failed read.
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
    let (fileList, listFinding) = try Self.fileList(of: archive, unlocked, isNeeded: wantsTree)
    let manifest = try ManifestContents(
      of: fileList, stored: stored, wantsTree: wantsTree, showsAll: showsAll, listsFiles: part == .tree && showsAll)
    listing = manifest.listing
    domains = manifest.domains
    tree = manifest.tree
    fileListing = manifest.fileListing
    var findings = unlocked?.findings ?? archive.findings
    let moreFindings =
      (fileList?.findings ?? []) + [stored.finding, decryptionObstacle ?? listFinding].compactMap(\.self)
    for finding in moreFindings where !findings.contains(finding) { findings.append(finding) }
    self.findings = findings
    measuredUnlock = isTimed ? measured : nil
    unlockTime = !isTimed ? nil : try? archive.keybag.derivationParameters().estimatedDuration(by: clock)
  }

  /// The files of the manifest, counted and grouped; empty if the manifest cannot be read.
  private struct ManifestContents {
    var listing: FileList.Listing?
    var domains: [FilesByDomain.Domain]?
    var tree: DomainTree?
    var fileListing: FileListing?

    /// Reads the manifest once.
    ///
    /// - Parameters:
    ///   - fileList: The manifest; `nil` if it cannot be read.
    ///   - stored: The stored files.
    ///   - wantsTree: Whether to create the tree.
    ///   - showsAll: Whether the tree has all directories; otherwise only the first level.
    ///   - listsFiles: Whether to create the list of all files. Requires `wantsTree`.
    init(
      of fileList: FileList?, stored: StoredPayloads, wantsTree: Bool, showsAll: Bool, listsFiles: Bool
    ) throws(KeyhaulError) {
      guard let fileList else { return }
      var byDomain = FilesByDomain()
      if wantsTree {
        let builder = DomainTree.Builder(stored: stored, depth: showsAll ? .max : 1)
        var index = FilesByDirectory()
        listing = try fileList.listing(against: stored, only: .file) { (file, position) throws(KeyhaulError) in
          builder.add(file)
          byDomain.add(file, stored: stored)
          if listsFiles { index.add(file, at: position) }
        }
        tree = builder.tree
        if listsFiles { fileListing = FileListing(fileList: fileList, index: index, stored: stored) }
      } else {
        listing = try fileList.listing(against: stored, only: .file) { (file, _) throws(KeyhaulError) in
          byDomain.add(file, stored: stored)
        }
      }
      domains = byDomain.largestFirst
    }
  }

  /// Returns the manifest; `nil` if it is encrypted or cannot be read, with a finding if damage is the reason.
  ///
  /// - Throws: The error of a failed read of the manifest. Damage is thrown only if `isNeeded` is `true`.
  private static func fileList(
    of archive: BackupArchive, _ unlocked: UnlockedBackup?, isNeeded: Bool
  ) throws(KeyhaulError) -> (fileList: FileList?, finding: BackupFinding?) {
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

  /// The class keys that lack the device's key wrap; `nil` if no class key lacks it.
  package var unbound: UnboundClassKeys? { archive.unboundClassKeys }
  /// Whether the items could be decrypted with a password.
  package var isUnlocked: Bool { unlocked != nil }
  /// The counts of the keychain's items; `nil` without the password, or if the keychain is missing or unreadable.
  package var itemCounts: BackupItemCounts? {
    archive.hasKeychain && unlocked?.keychainReadFailure == nil ? unlocked?.itemCounts : nil
  }

  /// Whether items are damaged, files are missing, or a finding means a loss.
  package var isPartlyUnreadable: Bool {
    unreadableCount > 0 || (listing?.missingCount ?? 0) > 0 || findings.contains(where: \.isLoss)
  }

  /// The number of damaged items.
  package var unreadableCount: Int { unlocked?.items.count { reason(of: $0)?.isDamage == true } ?? 0 }

  /// Returns the reason why an item cannot be decrypted; `nil` if the item can be decrypted.
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
    let details = BackupDetails(archive)
    backup.about = [details.device, details.origin(formatting: LongDateFormat.dateAndTime)]
    backup.sourceDeviceItems = sourceDeviceItems
    backup.apps = AppDirectory(installed: InstalledApps.names(in: archive))
    if let listing, let tree {
      backup.files = InspectionPage.Files(listing, branches: tree.root.children)
    }
    backup.keychainReadFailure = unlocked?.keychainReadFailure
    backup.items = backup.keychainReadFailure != nil ? nil : unlocked?.entries
    return InspectionPage(backup, program: program)
  }
}
