import ArchivedKeychain
import BackupArchive
import DataProtection
import KeychainFormats
import Migration

/// What can be said of an archive, with or without its password (`backup-inspection/1`).
struct Inspection {
  let name: String
  let archive: BackupArchive
  /// `nil` without the password of an encrypted archive.
  let opened: OpenedArchive?
  private let files: StoredPayloads
  private let listing: ManifestDatabase.Listing?
  /// Files that the list names and that are not stored; `nil` where the list stays closed.
  private let missing: Int?
  private let contents: ArchiveContents?

  init(_ named: Session.NamedArchive, opened: OpenedArchive?) throws(CommandFailure) {
    name = named.name
    archive = named.archive
    self.opened = opened
    do throws(BackupArchiveError) {
      files = try archive.storedFiles()
      var database = opened?.database
      if database == nil, !archive.isEncrypted { database = try archive.manifestDatabase() }
      listing = try database?.listing()
      missing = try database?.missingPayloads(in: files).count
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    contents = opened?.contents
  }

  /// Some items neither open nor stay closed by a rule.
  var isPartlyUnreadable: Bool { unreadableCount > 0 || (missing ?? 0) > 0 }

  private var unreadableCount: Int {
    opened?.items.count { item in
      switch item.opening {
      case .opened, .failed(.hardwareMissing): false
      case .failed: true
      }
    } ?? 0
  }

  // MARK: Text

  func lines(_ part: Inspect.Part?, style: TextStyle) -> [String] {
    switch part {
    case .keybag?: keybagLines(style)
    case .list?: itemLines(style)
    case nil: overview(width: style.width)
    }
  }

  private func overview(width: Int) -> [String] {
    let device = archive.device
    let made = archive.date.map { "made \(TimeText.localWithoutZone($0)) by " } ?? "made by "
    let model = [device.productType, device.productVersion.map { "iOS \($0)" }].compactMap(\.self).joined(
      separator: ", ")
    let maker = (device.name ?? "an unnamed device") + (model.isEmpty ? "" : " (\(model))")
    let state = archive.isEncrypted ? "encrypted" : "no password"
    let size = "\(Amounts.count(files.count, "file")), \(Amounts.bytes(files.byteCount))"
    let classes = archive.keybag.classKeys.count
    var rows: [(String, String)] = [
      (HostileText.shown(name), "\(made)\(maker) · \(state) · \(size)"),
      (
        "keybag",
        "version \(archive.keybag.version.map(String.init) ?? "?"), backup, \(Amounts.count(classes, "class key")) · \(roundsText)"
      ),
      ("keychain", keychainText),
    ]
    if let contents {
      rows.append(("items", itemsText(contents)))
    }
    let label = max(15, rows.map { DisplayWidth.columns(of: $0.0) }.max() ?? 0)
    var lines = rows.flatMap { row in
      WordWrap.labelled(
        DisplayWidth.padded(row.0, columns: label) + " ", HostileText.shown(row.1), columns: max(width, label + 40))
    }
    let unreadable = unreadableCount
    if unreadable > 0 {
      lines.append(
        "\(Amounts.count(unreadable, "item")) cannot be read in this copy; --list shows which.")
    }
    if archive.isEncrypted, opened == nil, archive.hasKeychain {
      lines.append("Add --password-file to see what is in it.")
    }
    return lines
  }

  private var roundsText: String {
    let keybag = archive.keybag
    let rounds = [keybag.secondRound?.rounds, keybag.iterations].compactMap(\.self).map { Amounts.grouped($0) }
    return "\(rounds.joined(separator: " + ")) rounds"
  }

  /// The sentence that matters: where this keychain can go.
  private var keychainText: String {
    guard archive.hasKeychain else { return "none in this backup" }
    let maker = archive.device.name ?? "the device that made it"
    guard archive.isEncrypted else {
      return "present. The backup has no password, so all of it goes back to \(maker) and to no other device."
    }
    let seal = opened == nil ? "present, sealed" : "present"
    return "\(seal). With the password its items can go to any device, those of \"this device\" only back to \(maker)."
  }

  private func itemsText(_ contents: ArchiveContents) -> String {
    let kinds = ItemKind.allCases.compactMap { kind in
      contents.countByKind[kind].map { "\(Amounts.grouped($0)) \(ItemText.kind(kind))" }
    }
    return "\(Amounts.count(contents.total, "item")): \(kinds.joined(separator: ", ")) · "
      + "\(Amounts.grouped(contents.migratable)) any device, \(Amounts.grouped(contents.thisDeviceOnly)) this device only"
  }

  private func keybagLines(_ style: TextStyle) -> [String] {
    let keybag = archive.keybag
    let head = [
      "uuid      \(keybag.uuidText ?? "none")", "version   \(keybag.version.map(String.init) ?? "none")",
      "type      \(keybag.type.map { String($0.rawValue) } ?? "none")", "rounds    \(roundsText)", "",
    ]
    var table = Table([
      .init("CLASS", rightAligned: true), .init("PROTECTS"), .init("WRAPPED WITH"), .init("KEY"),
    ])
    for record in keybag.classKeys {
      table.add([
        record.keyClass.map { String($0.rawValue) } ?? "?", Self.protects(record.keyClass), Self.wrapText(record.wrap),
        record.keyType == .curve25519 ? "Curve25519" : "AES",
      ])
    }
    return head + table.lines(style: style)
  }

  private static func protects(_ keyClass: KeyClass?) -> String {
    guard let keyClass else { return "?" }
    if let protection = ProtectionClass(keyClass: keyClass) { return "items: \(protection.phrase)" }
    return (1...4).contains(keyClass.rawValue) ? "files" : "–"
  }

  private static func wrapText(_ wrap: Keybag.WrapFlags?) -> String {
    guard let wrap else { return "?" }
    let names = [wrap.contains(.password) ? "password" : nil, wrap.contains(.device) ? "device" : nil]
    let known = names.compactMap(\.self)
    return known.isEmpty ? "nothing" : known.joined(separator: " and ")
  }

  private func itemLines(_ style: TextStyle) -> [String] {
    guard let opened else { return ["The archive holds no keychain."] }
    var table = Table([
      .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true), .init("PROTECTION"),
      .init("STATE"),
    ])
    for item in opened.items {
      let name = item.item.map { ItemText.name(ItemIdentity($0)) } ?? "(sealed)"
      table.add([
        String(item.index), ItemText.kind(item.kind), name, ItemText.protection(item.protection),
        item.item == nil ? item.stateText(isEncrypted: archive.isEncrypted) : "readable",
      ])
    }
    return table.lines(style: style)
  }

  // MARK: JSON

  var json: JSONValue {
    let keybag = archive.keybag
    let rounds = [keybag.secondRound?.rounds, keybag.iterations].compactMap(\.self).map { JSONValue.integer(Int64($0)) }
    return [
      "format": "backup-inspection/1",
      "device": [
        "udid": .text(archive.device.identifier), "name": .text(archive.device.name),
        "product_type": .text(archive.device.productType), "product_version": .text(archive.device.productVersion),
      ],
      "encrypted": .boolean(archive.isEncrypted), "made": .text(archive.date.map { Timestamp.text(of: $0) }),
      "layout": "manifest-db", "files": .count(files.count),
      "domains": listing.map { .count($0.rowCountByDomain.count) } ?? .null,
      "missing": missing.map { .count($0) } ?? .null,
      "keybag": [
        "version": keybag.version.map { .integer(Int64($0)) } ?? .null,
        "type": keybag.type.map { .integer(Int64($0.rawValue)) } ?? .null, "uuid": .text(keybag.uuidText),
        "rounds": .array(rounds),
        "classes": .array(
          keybag.classKeys.map { record in
            [
              "class": record.keyClass.map { .integer(Int64($0.rawValue)) } ?? .null,
              "wrap": record.wrap.map { .integer(Int64($0.rawValue)) } ?? .null,
              "key_type": record.keyType.map { .integer(Int64($0.rawValue)) } ?? .integer(0),
            ]
          }),
      ],
      "keychain": [
        "present": .boolean(archive.hasKeychain),
        "items": contents.map { contents in
          .object(
            ItemKind.allCases.compactMap { kind in contents.countByKind[kind].map { (kind.rawValue, .count($0)) } })
        } ?? .null,
        "by_protection": contents.map { contents in
          .object(
            ProtectionClass.allCases.compactMap { protection in
              contents.countByProtection[protection].map { (protection.rawValue, .count($0)) }
            })
        } ?? .null,
      ],
    ]
  }
}

extension ArchivedItem {
  /// In a word why an item does not open here.
  fileprivate func stateText(isEncrypted: Bool) -> String {
    switch opening {
    case .opened: "readable"
    case .failed(.hardwareMissing) where !isEncrypted && protection?.isThisDeviceOnly == false:
      Reason.backupNotEncrypted.rawValue
    case .failed(.hardwareMissing): Reason.deviceBound.rawValue
    case .failed(.noClassKey), .failed(.classKeyDamaged): Reason.noClassKey.rawValue
    case .failed(.keyUnwrapFailed), .failed(.tagMismatch): Reason.tagMismatch.rawValue
    case .failed(.malformed), .failed(.missingData): Reason.malformed.rawValue
    case .failed(.unsupportedVersion): Reason.unsupportedVersion.rawValue
    }
  }
}
