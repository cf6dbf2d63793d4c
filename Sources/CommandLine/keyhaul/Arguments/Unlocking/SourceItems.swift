import KeyhaulKit

/// The items of a source that can be read, but for marks of deleted ones: what a device or a Simulator is filled with.
struct SourceItems {
  /// What the user called the source.
  let name: String
  private(set) var items: [KeychainItem] = []
  /// How many cannot be read.
  private(set) var unreadableCount = 0
  /// The device that it is of, where it says so.
  private(set) var identity: DeviceIdentity?

  private init(name: String, _ entries: [KeychainEntry]) {
    self.name = name
    items = entries.compactMap(\.item).filter { !$0.isTombstone }
    unreadableCount = entries.count { $0.item == nil }
  }

  /// Only those of these access groups.
  ///
  mutating func keep(groups: Set<String>) {
    items.removeAll { item in !(item.accessGroup.map(groups.contains) ?? false) }
  }

  /// Reads a device, a backup, a dump, a database, or a description of a device that comes with the program.
  ///
  /// - Throws: What reading the source throws.
  static func read(
    _ source: String, _ unlocking: UnlockingOptions, _ databaseKeys: DatabaseKeyOptions,
    in session: Session
  ) throws -> SourceItems {
    let found: FoundKeychain
    do throws(CommandFailure) {
      found = try ArgumentFinder(session, databaseKeys).keychain(source)
    } catch {
      guard error.status == .notFound, let bytes = BundledFixtures.bytes(named: source) else { throw error }
      try unlocking.refuse(for: source)
      return try items(ofFixture: bytes, named: source)
    }
    try databaseKeys.check([found])
    switch found {
    case .device(let device):
      try unlocking.refuse(for: device.name)
      return try device.hold(.reading) { openDevice in
        let rows = try openDevice.keychain.rows(includingTombstones: false, keys: openDevice.classKeys)
        if rows.contains(where: { $0.fault?.isPermanent == false }) { throw ItemFailure.unreadable(on: openDevice) }
        return SourceItems(name: device.name, rows.map { KeychainEntry($0) })
      }
    case .dump(let dump):
      try dump.refuse(unlocking)
      dump.warn(in: session)
      // An app would take an item without its secret for its own and could not use it.
      return SourceItems(name: source, dump.dump.entries)
    case .archive(let archive):
      let named = try archive.open(storage: unlocking.storage, in: session)
      let opened = try ArchiveUnlocker(named, unlocking.opening, in: session).open(
        with: unlocking.password, for: .exporting)
      var source = SourceItems(name: named.name, opened.entries)
      source.identity = DeviceIdentity(named.archive.device)
      return source
    }
  }

  private static func items(ofFixture bytes: [UInt8], named name: String) throws(CommandFailure) -> SourceItems {
    do throws(KeyhaulError) {
      let description = try DeviceFixture(decoding: bytes, from: name)
      return SourceItems(
        name: name,
        description.items.map { described in
          var item = described.item
          if !described.accessConstraints.isEmpty {
            item[.accessControl] = .dictionary(AccessConstraint.operations(described.accessConstraints))
          }
          return KeychainEntry(index: nil, item: item)
        })
    } catch {
      throw CommandFailure(
        CommandStatus(error.category), "cannot read \(name)", why: error.reason, try: error.advice,
        of: error.systemReason)
    }
  }
}

extension DeviceIdentity {
  /// Of what a backup says; `nil` if that is not a model or not a version.
  fileprivate init?(_ device: BackupDevice) {
    guard let type = device.productType, type.wholeMatch(of: /[A-Za-z]{1,20}[0-9]{1,4},[0-9]{1,4}/) != nil,
      let version = device.productVersion.flatMap({ try? ProductVersion($0) })
    else { return nil }
    self.init(productType: type, productVersion: version)
  }
}
