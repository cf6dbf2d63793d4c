import KeyhaulKit

/// The readable items of a source, without tombstones, for filling a device or a Simulator.
struct SourceItems {
  /// The source's name, as the user typed it.
  let name: String
  private(set) var items: [KeychainItem] = []
  /// The number of unreadable items.
  private(set) var unreadableCount = 0
  /// The device that the source describes; `nil` if it describes none.
  private(set) var identity: DeviceIdentity?

  private init(name: String, _ entries: [KeychainEntry]) {
    self.name = name
    items = entries.compactMap(\.item).filter { !$0.isTombstone }
    unreadableCount = entries.count { $0.item == nil }
  }

  /// Warns about unreadable items, if there are any.
  ///
  /// - Parameter argument: The argument that names the source in the suggested command.
  func warnAboutUnreadable(argument: String, in session: Session) {
    guard unreadableCount > 0 else { return }
    session.warn(
      "left out \(HumanReadable.count(unreadableCount, "item")) of \(name) that cannot be read",
      why: unreadableCount == 1
        ? "only its device can decrypt it, or it is damaged"
        : "only their device can decrypt them, or they are damaged",
      try: "keyhaul inspect \(ShellQuoting.quote(argument)) --list")
  }

  /// Keeps only the items of these access groups.
  mutating func keepOnly(groups: Set<String>) {
    items.removeAll { item in !(item.accessGroup.map(groups.contains) ?? false) }
  }

  /// Reads a device, a backup, a dump, a database, or a bundled description of a device.
  ///
  /// - Throws: An error if the source cannot be read.
  static func read(
    _ source: String, _ accessOptions: BackupAccessOptions, _ databaseKeys: DatabaseKeyOptions,
    in session: Session
  ) throws -> SourceItems {
    let resolved: ResolvedSource
    do throws(CommandError) {
      resolved = try SourceResolver(session, databaseKeys).keychain(source)
    } catch {
      guard error.status == .notFound, let bytes = BundledFixtures.bytes(named: source) else { throw error }
      try accessOptions.reject(for: source)
      return try items(ofFixture: bytes, named: source)
    }
    try databaseKeys.check([resolved])
    switch resolved {
    case .device(let device):
      try accessOptions.reject(for: device.name)
      return try items(of: device)
    case .dump(let dump):
      try dump.reject(accessOptions)
      dump.warn(in: session)
      // An item whose secret cannot be decrypted counts as unreadable: an app would find it but could not use it.
      return SourceItems(name: source, dump.contents.entries)
    case .backup(let backup):
      return try items(of: backup, accessOptions, in: session)
    }
  }

  private static func items(of device: ResolvedDevice) throws -> SourceItems {
    try device.withSession(.reading) { openDevice in
      let rows = try openDevice.keychain.rows(includingTombstones: false, keys: openDevice.classKeys)
      if rows.contains(where: { $0.fault?.isPermanent == false }) { throw ItemError.unreadable(on: openDevice) }
      return SourceItems(name: device.name, rows.map { KeychainEntry($0) })
    }
  }

  private static func items(
    of backup: ResolvedBackup, _ accessOptions: BackupAccessOptions, in session: Session
  ) throws -> SourceItems {
    let loaded = try backup.open(storage: accessOptions.storage, in: session)
    let opened = try BackupUnlocker(loaded, accessOptions.decryption, in: session).open(
      with: accessOptions.password, for: .exporting)
    var items = SourceItems(name: loaded.name, opened.entries)
    items.identity = DeviceIdentity(loaded.archive.device)
    return items
  }

  private static func items(ofFixture bytes: [UInt8], named name: String) throws(CommandError) -> SourceItems {
    do throws(KeyhaulError) {
      let fixture = try DeviceFixture(decoding: bytes, from: name)
      let entries = fixture.items.map { fixtureItem in
        var item = fixtureItem.item
        if !fixtureItem.accessConstraints.isEmpty {
          item[.accessControl] = .dictionary(AccessConstraint.operations(fixtureItem.accessConstraints))
        }
        return KeychainEntry(index: nil, item: item)
      }
      return SourceItems(name: name, entries)
    } catch {
      throw CommandError(
        CommandExitStatus(error.category), "cannot read \(name)", why: error.reason, try: error.advice,
        of: error.systemReason)
    }
  }
}

extension DeviceIdentity {
  /// Returns whether a text has the form of a product type: "iPhone15,2".
  static func isProductType(_ text: String) -> Bool {
    text.wholeMatch(of: /[A-Za-z]{1,20}[0-9]{1,4},[0-9]{1,4}/) != nil
  }

  /// Creates an identity from a backup's statements; `nil` if they do not contain a valid model and version.
  fileprivate init?(_ device: BackupDevice) {
    guard let type = device.productType, Self.isProductType(type),
      let version = device.productVersion.flatMap({ try? ProductVersion($0) })
    else { return nil }
    self.init(productType: type, productVersion: version)
  }
}
