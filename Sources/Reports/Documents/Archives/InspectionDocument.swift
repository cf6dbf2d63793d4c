package import ArchivedKeychain
package import BackupArchive
import DataProtection
package import KeychainFormats
import KeychainRules
package import Migration

/// The document of `backup-inspection/1`: what can be said of an archive, with or without its password.
package struct InspectionDocument {
  let archive: BackupArchive
  let opened: OpenedArchive?
  let files: StoredPayloads
  let listing: FileList.Listing?
  let tree: DomainTree?
  let unlockTime: Duration?
  let listsItems: Bool
  let showsTree: Bool
  let maker: MakerItems?
  let found: [ArchiveFinding]

  /// `nil` where there is no keychain to count.
  private var contents: ArchiveContents? { archive.hasKeychain ? opened?.contents : nil }

  /// - Parameters:
  ///   - opened: With its keychain's items tried; `nil` without the password.
  ///   - files: The stored files.
  ///   - listing: The list of files counted; `nil` where the list stays closed.
  ///   - tree: The list's domains; `nil` where the list stays closed or nobody asked.
  ///   - unlockTime: How long deriving the password's key takes on this machine.
  ///   - maker: What the device that made the archive has besides, where it was asked.
  ///   - findings: What was gone around.
  package init(
    _ archive: BackupArchive, opened: OpenedArchive?, files: StoredPayloads, listing: FileList.Listing?,
    tree: DomainTree?, unlockTime: Duration?, listsItems: Bool, showsTree: Bool, maker: MakerItems?,
    findings: [ArchiveFinding]
  ) {
    found = findings
    self.maker = maker
    self.archive = archive
    self.opened = opened
    self.files = files
    self.listing = listing
    self.tree = tree
    self.unlockTime = unlockTime
    self.listsItems = listsItems
    self.showsTree = showsTree
  }

  /// What is not known without the password is `null`.
  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("format", "backup-inspection/1"),
      (
        "device",
        [
          "udid": .text(archive.device.identifier), "name": .text(archive.device.name),
          "product_type": .text(archive.device.productType), "product_version": .text(archive.device.productVersion),
        ]
      ),
      ("encrypted", .boolean(archive.isEncrypted)), ("made", .text(archive.date.map { Timestamp.text(of: $0) })),
      ("layout", .string(archive.layout.rawValue)), ("files", .count(files.count)),
      ("bytes", .integer(files.byteCount)),
      ("listed", listing.map(Self.json) ?? .null),
      ("domains", listing.map { .count($0.rowCountByDomain.count) } ?? .null),
      ("missing", listing.map { .count($0.missingCount) } ?? .null), ("keybag", keybagJSON), ("keychain", keychainJSON),
      ("findings", .array(findings)),
      UnseenItems.field,
    ]
    if let maker { fields.append(("not_in_backup", PlanDocument.NotInBackup(maker).json)) }
    if listsItems { fields.append(("items", opened.map { .array($0.items.map(json)) } ?? .null)) }
    if showsTree { fields.append(("tree", tree.map { .array($0.root.children.map(Self.json)) } ?? .null)) }
    return .object(fields)
  }

  /// What no device writes.
  private var findings: [JSONValue] {
    let others = found.map(\.json)
    guard let unbound = archive.unboundKeychain else { return others }
    return others + [
      [
        "id": .string(BackupVerification.Fault.Kind.hardwareLayerMissing.rawValue),
        "detail": .string("\(unbound.fact): \(unbound.meaning)"),
        "classes": .array(unbound.classes.map { .integer(Int64($0.rawValue)) }), "refused": .boolean(unbound.isRefused),
      ]
    ]
  }

  private static func json(_ listing: FileList.Listing) -> JSONValue {
    [
      "files": .count(listing.fileCount), "folders": .count(listing.directoryCount), "links": .count(listing.linkCount),
      "unreadable": .count(listing.unreadableRowCount),
    ]
  }

  private var keybagJSON: JSONValue {
    let keybag = archive.keybag
    let rounds = [keybag.secondRound?.rounds, keybag.iterations].compactMap(\.self).map { JSONValue.integer(Int64($0)) }
    return [
      "version": keybag.version.map { .integer(Int64($0)) } ?? .null,
      "type": keybag.type.map { .integer(Int64($0.rawValue)) } ?? .null, "uuid": .text(keybag.uuidText),
      "rounds": .array(rounds),
      "unlock_seconds": unlockTime.map { .number(($0 / .milliseconds(1)).rounded() / 1000) } ?? .null,
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
      "items": contents.map { contents in
        .object(ItemKind.allCases.compactMap { kind in contents.countByKind[kind].map { (kind.rawValue, .count($0)) } })
      } ?? .null,
      "by_protection": contents.map { contents in
        .object(
          ProtectionClass.allCases.compactMap { protection in
            contents.countByProtection[protection].map { (protection.rawValue, .count($0)) }
          })
      } ?? .null,
    ]
  }

  private func json(_ item: ArchivedItem) -> JSONValue {
    let identity = item.item.map(ItemIdentity.init) ?? ItemIdentity(sealed: item.kind)
    var fields: [(String, JSONValue)] = [("index", .count(item.index))] + JSONValue.identity(identity)
    fields.append(("protection", .text(item.protection?.rawValue)))
    let reason = opened?.reason(of: item)
    fields.append(("readable", .boolean(reason == nil)))
    if let reason { fields.append(("reason", .string(reason.rawValue))) }
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
