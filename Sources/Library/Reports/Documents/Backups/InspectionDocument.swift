package import KeyhaulKit

/// The contents of a backup, with or without its password (`backup-inspection/1`).
package struct InspectionDocument {
  let archive: BackupArchive
  let unlocked: UnlockedBackup?
  let files: StoredPayloads
  let listing: FileList.Listing?
  let domains: [FilesByDomain.Domain]?
  let tree: DomainTree?
  let unlockTime: (estimated: Duration?, measured: Duration?)
  let listsItems: Bool
  let showsTree: Bool
  let sourceDeviceItems: SourceDeviceItems?
  let findings: [BackupFinding]

  /// The counts of the keychain's items; `nil` without the password, or if the keychain is missing or unreadable.
  private var itemCounts: BackupItemCounts? {
    archive.hasKeychain && unlocked?.keychainReadFailure == nil ? unlocked?.itemCounts : nil
  }

  /// Creates the document of a backup.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - unlocked: The backup with its decrypted items; `nil` without the password.
  ///   - files: The stored files, for their number and size.
  ///   - listing: The counts of the manifest's files; `nil` if the manifest cannot be decrypted or read.
  ///   - domains: The files by domain, the largest first; `nil` if the manifest cannot be decrypted or read.
  ///   - tree: The domains and directories of the manifest; `nil` if the manifest cannot be decrypted or read, or if the
  ///     tree was not requested.
  ///   - unlockTime: The estimated and the measured time to derive the key from the password on this machine.
  ///   - listsItems: Whether to list every item.
  ///   - showsTree: Whether to list the domains and directories.
  ///   - sourceDeviceItems: The items of the source device that are not in the backup; `nil` if the device was not available.
  ///   - findings: The findings that did not prevent the inspection.
  package init(
    _ archive: BackupArchive, unlocked: UnlockedBackup?, files: StoredPayloads, listing: FileList.Listing?,
    domains: [FilesByDomain.Domain]?, tree: DomainTree?, unlockTime: (estimated: Duration?, measured: Duration?),
    listsItems: Bool, showsTree: Bool, sourceDeviceItems: SourceDeviceItems?, findings: [BackupFinding]
  ) {
    self.archive = archive
    self.unlocked = unlocked
    self.files = files
    self.listing = listing
    self.domains = domains
    self.tree = tree
    self.unlockTime = unlockTime
    self.listsItems = listsItems
    self.showsTree = showsTree
    self.sourceDeviceItems = sourceDeviceItems
    self.findings = findings
  }

  /// The document. Without the password, members that require it are `null`.
  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("format", "backup-inspection/1"), ("device", deviceJSON),
      ("passcode_set", archive.wasPasscodeSet.map { .boolean($0) } ?? .null), ("status", statusJSON),
      ("computer", computerJSON),
      ("encrypted", archive.isManifestUnreadable ? .null : .boolean(archive.areFilesEncrypted)),
      ("made", .text(archive.date.map { Timestamp.text(of: $0) })),
      ("has_seal", .boolean(archive.seal != nil)),
      ("layout", .string(archive.layout.rawValue)), ("files", .count(files.count)),
      ("bytes", .integer(files.byteCount)),
      ("listed", listing.map(Self.json) ?? .null),
      ("domains", listing.map { .count($0.rowCountByDomain.count) } ?? .null),
      ("by_domain", domains.map { .array($0.map(Self.json)) } ?? .null),
      ("missing", listing.map { .count($0.missingCount) } ?? .null), ("keybag", keybagJSON), ("keychain", keychainJSON),
      ("findings", .array(findingsJSON)),
      BackupBlindSpots.field,
    ]
    if let sourceDeviceItems { fields.append(("not_in_backup", PlanDocument.NotInBackup(sourceDeviceItems).json)) }
    if listsItems { fields.append(("items", unlocked.map(Self.items) ?? .null)) }
    if showsTree { fields.append(("tree", tree.map { .array($0.root.children.map(Self.json)) } ?? .null)) }
    return .object(fields)
  }

  private var deviceJSON: JSONValue {
    let device = archive.device
    return [
      "udid": .text(device.identifier), "name": .text(device.name), "product_type": .text(device.productType),
      "product_version": .text(device.productVersion), "model_name": .text(BackupDetails(archive).modelName),
      "build_version": .text(device.buildVersion), "serial_number": .text(device.serialNumber),
    ]
  }

  /// The findings, including class keys that are not bound to the device.
  private var findingsJSON: [JSONValue] {
    guard let unbound = archive.unboundClassKeys else { return findings.map(\.json) }
    return findings.map(\.json) + [
      [
        "id": .string(BackupVerification.Fault.Kind.hardwareLayerMissing.rawValue),
        "detail": .string("\(unbound.summary): \(unbound.consequence)"),
        "classes": .array(unbound.classes.map { .integer(Int64($0.rawValue)) }),
        "refused": .boolean(unbound.blocksRestore),
      ]
    ]
  }

  /// The state of the backup according to `Status.plist`.
  private var statusJSON: JSONValue {
    guard let status = archive.status else { return .null }
    return [
      "state": .text(status.snapshotState), "date": .text(status.date.map { Timestamp.text(of: $0) }),
      "full": status.isFullBackup.map { .boolean($0) } ?? .null,
    ]
  }

  /// The computer that made the backup, according to `Info.plist`.
  private var computerJSON: JSONValue {
    guard let info = archive.computerProperties else { return .null }
    return [
      "itunes_version": .text(info.iTunesVersion), "macos_version": .text(info.macOSVersion),
      "last_backup": .text(info.lastBackup.map { Timestamp.text(of: $0) }),
    ]
  }

  private static func json(_ domain: FilesByDomain.Domain) -> JSONValue {
    [
      "name": .string(domain.name), "files": .count(domain.fileCount), "bytes": .integer(domain.storedByteCount),
      "missing": .count(domain.missingCount),
    ]
  }

  private static func seconds(_ time: Duration?) -> JSONValue {
    time.map { .number(($0 / .milliseconds(1)).rounded() / 1000) } ?? .null
  }

  private static func json(_ listing: FileList.Listing) -> JSONValue {
    [
      "files": .count(listing.fileCount), "folders": .count(listing.directoryCount), "links": .count(listing.linkCount),
      "unreadable": .count(listing.inconsistentRowCount),
    ]
  }

  private var keybagJSON: JSONValue {
    let keybag = archive.keybag
    // The slow derivation is the first step, and is listed first.
    let iterationCounts = [keybag.secondStep?.iterations, keybag.iterations].compactMap(\.self)
    return [
      "version": keybag.version.map { .integer(Int64($0)) } ?? .null,
      "type": keybag.type.map { .integer(Int64($0.rawValue)) } ?? .null, "uuid": .text(keybag.uuidText),
      "rounds": .array(iterationCounts.map { .integer(Int64($0)) }),
      "unlock_seconds": Self.seconds(unlockTime.estimated), "unlocked_in_seconds": Self.seconds(unlockTime.measured),
      "classes": .array(
        keybag.classKeys.map { record in
          [
            "class": record.keyClass.map { .integer(Int64($0.rawValue)) } ?? .null,
            "protection": .text(record.keyClass.flatMap(ProtectionClass.init(keyClass:))?.rawValue),
            "generation": record.keyClass.map { .integer(Int64($0.generation)) } ?? .null,
            "wrap": record.wrap.map { .integer(Int64($0.rawValue)) } ?? .null,
            "key_type": record.keyType.map { .integer(Int64($0.rawValue)) } ?? .integer(0),
          ]
        }),
    ]
  }

  private var keychainJSON: JSONValue {
    [
      "present": .boolean(archive.hasKeychain),
      "items": itemCounts.map { itemCounts in
        .object(
          ItemKind.allCases.compactMap { kind in itemCounts.countByKind[kind].map { (kind.rawValue, .count($0)) } })
      } ?? .null,
      "by_protection": itemCounts.map { itemCounts in
        .object(
          ProtectionClass.allCases.compactMap { protection in
            itemCounts.countByProtection[protection].map { (protection.rawValue, .count($0)) }
          })
      } ?? .null,
      // The items that cannot be decrypted. The member has nothing to do with the seal.
      "sealed": itemCounts.map { _ in .array(UndecryptedItems(unlocked).groups.map(Self.json)) } ?? .null,
    ]
  }

  private static func json(_ group: UndecryptedItems.Group) -> JSONValue {
    [
      "kind": .string(group.kind.reportName), "protection": .text(group.protection?.rawValue),
      "reason": .string(group.reason.rawValue), "count": .count(group.count),
    ]
  }

  private static func items(of unlocked: UnlockedBackup) -> JSONValue {
    .each(unlocked.entries, json)
  }

  private static func json(_ entry: KeychainEntry) -> JSONValue {
    var fields: [(String, JSONValue)] = entry.index.map { [("index", .count($0))] } ?? []
    fields += JSONValue.identity(entry.identity)
    fields.append(("protection", .text(entry.protection?.rawValue)))
    fields.append(("readable", .boolean(entry.item != nil)))
    if let reason = entry.reason { fields.append(("reason", .string(reason.rawValue))) }
    return .object(fields)
  }

  private static func json(_ node: DomainTree.Node) -> JSONValue {
    var fields: [(String, JSONValue)] = [
      ("name", .string(node.name)), ("files", .count(node.fileCount)), ("bytes", .integer(node.storedByteCount)),
      ("missing", .count(node.missingCount)),
    ]
    if !node.children.isEmpty { fields.append(("children", .array(node.children.map(json)))) }
    return .object(fields)
  }
}
