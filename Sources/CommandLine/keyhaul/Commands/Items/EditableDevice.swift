import KeyhaulKit
import Reports

/// The keychain of a device. The device's file lock is not held while the user decides.
final class EditableDevice: EditableKeychain {
  private let device: ResolvedDevice
  private let selection: ItemSelection
  /// The device's revision and the entries' indexes when the user was asked.
  private var confirmedState: (revision: String, indexes: [RowReference: Int])?

  init(_ device: ResolvedDevice, _ selection: ItemSelection) {
    self.device = device
    self.selection = selection
  }

  var name: String { device.name }
  var preposition: String { "on" }
  var document: ItemDocument { ItemDocument(source: ("device", name), revealsSecrets: false) }
  var undecryptableCount: Int { 0 }

  func remark(about item: KeychainItem) -> String {
    guard let protection = item.protection, protection != .whenPasscodeSetThisDeviceOnly
    else { return "never leaves this device" }
    guard item[.accessControl] == nil else { return "in no backup" }
    return protection.isThisDeviceOnly ? "stays on this device" : "moves with an encrypted backup"
  }

  func check(_ attributes: ItemAttributeOptions) {}

  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry] {
    try device.withSession(.reading) { openDevice in
      if let changes {
        try ItemError.checkGroups(
          [changes.attributes[.accessGroup]?.stringValue].compactMap(\.self), of: selection.app, on: openDevice)
      }
      let entries = try selection.rows(on: openDevice, to: changes == nil ? "delete" : "change")
      if changes != nil, entries.contains(where: \.isLocked) { throw ItemError.locked("change", on: openDevice) }
      let indexes = try openDevice.keychain.indexes(of: Set(entries.map(\.rowReference)))
      confirmedState = (openDevice.record.revision, indexes)
      return entries.map { $0.numbered(indexes) }
    }
  }

  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool {
    guard entries.compactMap(\.item).allSatisfy({ changes.attributesAreNoOp(for: $0) }) else { return false }
    guard !changes.secrets.isEmpty else { return true }
    return try device.withSession(.reading) { openDevice in
      let items = try selection.items(on: openDevice, wantsSecret: true).compactMap(\.item)
      return items.count == entries.count && items.allSatisfy { changes.isNoOp(for: $0) }
    }
  }

  func removeLeftovers() {}

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, reportedAs change: CommittedChange, in session: Session
  ) throws -> [KeychainEntry] {
    if case .delete = edit, isDryRun { return [] }
    return try device.withSession(.writing) { openDevice in
      if let confirmedState { try openDevice.requireUnchanged(since: confirmedState.revision) }
      switch edit {
      case .add(let item):
        let storedItem = try committing(change, unless: isDryRun, in: session) { () throws(CommandError) in
          try add(item, on: openDevice, isDryRun: isDryRun)
        }
        let indexes = session.isJSON ? try openDevice.keychain.indexes(of: [storedItem.summary.reference]) : [:]
        return [KeychainEntry(storedItem).numbered(indexes)]
      case .update(let entries, let changes):
        try committing(change, unless: isDryRun, in: session) { () throws(CommandError) in
          try update(changes, on: openDevice, isDryRun: isDryRun)
        }
        return isDryRun ? [] : try currentEntries(for: entries, on: openDevice)
      case .delete:
        try session.committing(change) { () throws(CommandError) in try delete(on: openDevice) }
        return []
      }
    }
  }

  /// Makes a change, and records it unless this is a dry run.
  private func committing<Value>(
    _ change: CommittedChange, unless isDryRun: Bool, in session: Session, _ body: () throws(CommandError) -> Value
  ) throws(CommandError) -> Value {
    isDryRun ? try body() : try session.committing(change, body)
  }

  private func add(
    _ item: KeychainItem, on openDevice: DeviceSession, isDryRun: Bool
  ) throws(CommandError) -> StoredItem {
    let app = selection.app
    try ItemError.checkGroups([item.accessGroup].compactMap(\.self), of: app, on: openDevice)
    do throws(KeyhaulError) {
      return isDryRun ? try openDevice.validateAdding(item, as: app) : try openDevice.add(item, as: app)
    } catch {
      throw ItemError.adding(item, to: openDevice.name, error: error)
    }
  }

  private func update(
    _ changes: ItemChanges, on openDevice: DeviceSession, isDryRun: Bool
  ) throws(CommandError) {
    // An update without a condition would delete a row that cannot be decrypted, as a real device does. A condition that
    // every item meets prevents this.
    var query = selection.query
    let condition = query.condition
    query.condition = { condition?($0) ?? true }
    do throws(KeyhaulError) {
      if isDryRun {
        try openDevice.validateUpdating(query, with: changes, as: selection.app)
      } else {
        try openDevice.update(query, with: changes, as: selection.app)
      }
    } catch {
      throw ItemError.committing(error, verb: "change", on: openDevice)
    }
  }

  private func delete(on openDevice: DeviceSession) throws(CommandError) {
    do throws(KeyhaulError) {
      try openDevice.delete(selection.query, as: selection.app)
    } catch {
      throw ItemError.committing(error, verb: "delete", on: openDevice)
    }
  }

  /// Returns the entries with their current values.
  private func currentEntries(
    for entries: [KeychainEntry], on openDevice: DeviceSession
  ) throws(CommandError) -> [KeychainEntry] {
    do throws(KeyhaulError) {
      var updatedEntries: [KeychainEntry] = []
      for entry in entries {
        updatedEntries += KeychainEntry.entries(of: try openDevice.find(ItemQuery(row: entry.rowReference)))
      }
      return updatedEntries.map { $0.numbered(confirmedState?.indexes ?? [:]) }
    } catch {
      throw ItemError.finding(error, on: openDevice)
    }
  }
}
