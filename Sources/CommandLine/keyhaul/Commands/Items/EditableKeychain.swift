import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A change of a keychain's items.
enum ItemEdit {
  case add(KeychainItem)
  case update([KeychainEntry], ItemChanges)
  case delete([KeychainEntry])
}

/// A keychain whose items a command changes: of a device, a backup or a Simulator.
///
/// A command gets the matching entries, and makes its change after the user has agreed. A change is made completely or
/// not at all.
protocol EditableKeychain {
  /// The keychain's name in messages.
  var name: String { get }
  /// The preposition before the name: "on" a device, "in" a backup.
  var preposition: String { get }
  /// The end of a sentence about a change, which names the changed copy; empty if the keychain itself is changed.
  var ending: String { get }
  /// A note to show before the user is asked; `nil` if there is none.
  var note: String? { get }
  /// The document of the items, without secrets.
  var document: ItemDocument { get }
  /// The number of items that cannot be decrypted. A new item may duplicate one of them.
  var undecryptableCount: Int { get }

  /// Returns a phrase about where an added item can move: "moves with an encrypted backup".
  func portability(of item: KeychainItem) -> String

  /// Rejects attributes that this keychain cannot give to a new item.
  func check(_ attributes: ItemAttributeOptions) throws(CommandError)

  /// Returns the entries that match the selection.
  ///
  /// - Parameter changes: The intended changes; `nil` if the entries are to be deleted.
  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry]

  /// Returns whether all entries already have the new values.
  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool

  /// Removes leftovers of killed commands, for a command that has nothing to change.
  func removeLeftovers()

  /// Changes the keychain.
  ///
  /// - Parameters:
  ///   - edit: The change.
  ///   - isDryRun: Whether this is a dry run, which does everything except writing.
  ///   - done: The completed change, for messages.
  /// - Returns: The items that were added or changed, with their new values.
  func apply(
    _ edit: ItemEdit, isDryRun: Bool, _ done: CommittedChange, in session: Session
  ) throws -> [KeychainEntry]
}

/// A keychain whose items are all read first, and which is then rewritten as a whole.
protocol RewrittenKeychain: EditableKeychain {
  var items: SearchableItems { get }
  var selection: ItemSelection { get }
}

extension EditableKeychain {
  var ending: String { "" }
}

extension RewrittenKeychain {
  var name: String { items.name }
  var preposition: String { "in" }
  var document: ItemDocument { items.document(revealsSecrets: false) }
  var undecryptableCount: Int { items.undecryptable.count }

  func check(_ attributes: ItemAttributeOptions) throws(CommandError) {
    try selection.requireNoApp(of: name)
    guard attributes.accessGroup == nil else { return }
    throw .usage(
      "no access group was given for the item", why: "only a device can choose one; \(name) cannot",
      try: "--access-group GROUP")
  }

  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry] {
    try selection.requireNoApp(of: name)
    let entries = items.matching(selection)
    items.reportUndecryptable(excluding: entries, for: selection, in: session)
    return entries
  }

  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool {
    entries.compactMap(\.item).allSatisfy { changes.isNoOp(for: $0) }
  }
}

/// The keychain of a device. The device is not locked while the user decides.
final class EditableDevice: EditableKeychain {
  private let device: ResolvedDevice
  private let selection: ItemSelection
  /// The device's revision and the entries' positions when the user was asked.
  private var confirmedState: (revision: String, indexes: [RowReference: Int])?

  init(_ device: ResolvedDevice, _ selection: ItemSelection) {
    self.device = device
    self.selection = selection
  }

  var name: String { device.name }
  var preposition: String { "on" }
  var note: String? { nil }
  var document: ItemDocument { ItemDocument(source: ("device", name), revealsSecrets: false) }
  var undecryptableCount: Int { 0 }

  func portability(of item: KeychainItem) -> String {
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
      let rows = try selection.rows(on: openDevice, to: changes == nil ? "delete" : "change")
      if changes != nil, rows.contains(where: \.isLocked) { throw ItemError.locked("change", on: openDevice) }
      let indexes = try openDevice.keychain.positions(of: Set(rows.map(\.place)))
      confirmedState = (openDevice.record.revision, indexes)
      return rows.map { $0.numbered(indexes) }
    }
  }

  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool {
    guard entries.compactMap(\.item).allSatisfy({ changes.attributesAreNoOp(for: $0) }) else { return false }
    guard !changes.secrets.isEmpty else { return true }
    return try device.withSession(.reading) { openDevice in
      let found = try selection.items(on: openDevice, wantsSecret: true).compactMap(\.item)
      return found.count == entries.count && found.allSatisfy { changes.isNoOp(for: $0) }
    }
  }

  func removeLeftovers() {}

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, _ done: CommittedChange, in session: Session
  ) throws -> [KeychainEntry] {
    if case .delete = edit, isDryRun { return [] }
    return try device.withSession(.writing) { openDevice in
      if let confirmedState { try openDevice.requireUnchanged(since: confirmedState.revision) }
      switch edit {
      case .add(let item):
        let stored =
          isDryRun
          ? try add(item, on: openDevice, isDryRun: true)
          : try session.committing(done) { () throws(CommandError) in
            try add(item, on: openDevice, isDryRun: false)
          }
        let indexes = session.isJSON ? try openDevice.keychain.positions(of: [stored.summary.reference]) : [:]
        return [KeychainEntry(stored).numbered(indexes)]
      case .update(let entries, let changes):
        guard !isDryRun else {
          try update(changes, on: openDevice, isDryRun: true)
          return []
        }
        try session.committing(done) { () throws(CommandError) in
          try update(changes, on: openDevice, isDryRun: false)
        }
        return try found(entries, on: openDevice)
      case .delete:
        try session.committing(done) { () throws(CommandError) in
          do throws(KeyhaulError) { try openDevice.delete(selection.query, as: selection.app) } catch {
            throw ItemError.committing(error, "delete", on: openDevice)
          }
        }
        return []
      }
    }
  }

  private func add(
    _ item: KeychainItem, on openDevice: DeviceSession, isDryRun: Bool
  ) throws(CommandError) -> StoredItem {
    let app = selection.app
    try ItemError.checkGroups([item.accessGroup].compactMap(\.self), of: app, on: openDevice)
    do throws(KeyhaulError) {
      return isDryRun ? try openDevice.validateAdding(item, as: app) : try openDevice.add(item, as: app)
    } catch {
      throw ItemError.adding(item, error, to: openDevice.name)
    }
  }

  private func update(
    _ changes: ItemChanges, on openDevice: DeviceSession, isDryRun: Bool
  ) throws(CommandError) {
    // An update without a condition would delete a row that cannot be decrypted, as a real device does.
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
      throw ItemError.committing(error, "change", on: openDevice)
    }
  }

  /// Returns the entries with their current values.
  private func found(
    _ entries: [KeychainEntry], on openDevice: DeviceSession
  ) throws(CommandError) -> [KeychainEntry] {
    do throws(KeyhaulError) {
      var changed: [KeychainEntry] = []
      for entry in entries { changed += KeychainEntry.all(of: try openDevice.find(ItemQuery(row: entry.place))) }
      return changed.map { $0.numbered(confirmedState?.indexes ?? [:]) }
    } catch {
      throw ItemError.finding(error, on: openDevice)
    }
  }
}

/// The keychain of a backup, decrypted with its password and, if available, its device's key.
struct EditableBackup: RewrittenKeychain {
  let items: SearchableItems
  let selection: ItemSelection
  private let loaded: LoadedBackup
  private let path: String
  private let opened: UnlockedBackup
  private let unlocker: BackupUnlocker
  private let key: BackupKey
  private let hardware: HardwareKey?
  private let change: ChangeOptions
  private let target: BackupRewriter.Target

  /// Opens a backup for a change.
  ///
  /// - Throws: An error if the backup cannot be decrypted or rewritten.
  init(
    _ found: ResolvedBackup, _ selection: ItemSelection, _ unlocking: BackupAccessOptions, _ change: ChangeOptions,
    to verb: String, isDryRun: Bool, in session: Session
  ) throws(CommandError) {
    self.selection = selection
    self.change = change
    try change.check(differsFrom: found.files + unlocking.files, in: session)
    // The backup is rewritten next to the file that a link points to.
    path = URL(filePath: try found.requirePath(for: "item \(verb)")).resolvingSymlinksInPath().path
    let isRead = isDryRun || change.output != nil
    loaded = try found.open(isRead ? .reading : .writing, storage: unlocking.storage, in: session)
    do throws(KeyhaulError) {
      try loaded.archive.require(.rewriting)
      try BackupRewriter.checkReencryption(of: loaded.archive)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    target = try change.target(for: loaded, isDryRun: isDryRun, in: session)
    unlocker = BackupUnlocker(loaded, unlocking.decryption, in: session)
    let given = try unlocker.hardwareKey()
    key = try unlocker.key(unlocking.password)
    opened = try unlocker.open(with: key, given, for: .rewriting)
    try Self.requireKeychainAsRecorded(opened, loaded.name)
    hardware = opened.isSameDevice == false ? given?.fallback : given
    items = SearchableItems(opened, named: loaded.name)
  }

  /// Rejects a keychain file that differs from its recorded digest or size. Rewriting it would update both, and hide
  /// that items may be missing.
  private static func requireKeychainAsRecorded(_ opened: UnlockedBackup, _ name: String) throws(CommandError) {
    let lost = opened.damage.filter { damage in
      switch damage {
      case .keychainChanged, .keychainSize: true
      case .statusMissing, .classKeys, .finding: false
      }
    }
    guard !lost.isEmpty else { return }
    throw CommandError(
      .damaged, "\(name) is damaged, and nothing was changed", why: lost.map(\.description).joined(separator: "; "),
      try: "another copy; rewriting this copy would hide the damage")
  }

  func removeLeftovers() {
    if change.output == nil { BackupRewriter().removeLeftovers(of: loaded.archive, at: path) }
  }

  var ending: String { change.ending(for: loaded.name) }

  func portability(of item: KeychainItem) -> String {
    guard opened.hasPassword, item.protection?.isThisDeviceOnly == false else {
      return "can be decrypted only on the source device"
    }
    return "can be decrypted on any device with the backup's password"
  }

  var note: String? { nil }

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, _ done: CommittedChange, in session: Session
  ) throws(CommandError) -> [KeychainEntry] {
    let bytes: [UInt8]
    let keys = try unlocker.classKeys(with: key, hardware)
    var changed: [KeychainEntry] = []
    do throws(ItemEditError) {
      let environment = DeviceEnvironment.interruptible
      let keychain = try EditedKeychain(
        opened, keys: keys, now: environment.clock.now(), random: environment.random)
      switch edit {
      case .add(let item):
        let (stored, index) = try keychain.add(item)
        changed = [KeychainEntry(index: index, item: stored)]
      case .update(let rows, let changes):
        let new = try keychain.update(rows.map { Int($0.place.rowID) }, with: changes)
        changed = zip(rows, new).map { row, item in KeychainEntry(index: row.index, item: item) }
      case .delete(let rows): keychain.remove(rows.map { Int($0.place.rowID) })
      }
      bytes = try keychain.serialized()
    } catch {
      throw ItemEditErrorText.commandError(for: error, name: name, hasPassword: opened.hasPassword)
    }
    if !isDryRun { try write(bytes, done, in: session) }
    return changed
  }

  private func write(_ bytes: [UInt8], _ done: CommittedChange, in session: Session) throws(CommandError) {
    let keys = try unlocker.classKeys(with: key, hardware)
    let written = try session.rewriting(loaded, to: change.output, change.done(done)) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.replaceKeychain(
        of: loaded.archive, at: path, with: bytes, keys: keys, to: target, progress: progress)
    }
    session.warnIfOldBackupRemains(written.leftover)
    session.warn(aboutUnrelatedFiles: written.unrelatedFiles)
  }
}

/// The keychain of a Simulator.
struct EditableSimulator: RewrittenKeychain {
  let items: SearchableItems
  let selection: ItemSelection
  private let simulator: ResolvedSimulator
  /// The primary keys of tombstones, which a new item replaces.
  private let deleted: Set<PrimaryKey>

  /// Opens a Simulator's keychain for a change.
  ///
  /// - Throws: `.refused` for a dump.
  init(_ found: ResolvedDump, _ selection: ItemSelection) throws(CommandError) {
    self.selection = selection
    simulator = try ResolvedSimulator(found)
    items = SearchableItems(found)
    deleted = Set(found.dump.items.compactMap(\.item).filter(\.isTombstone).compactMap { try? PrimaryKey(of: $0) })
  }

  func portability(of item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  var note: String? { nil }

  func removeLeftovers() {}

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, _ done: CommittedChange, in session: Session
  ) throws(CommandError) -> [KeychainEntry] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(done, isDryRun: isDryRun, in: session) {
      (keychain) throws(KeyhaulError) in
      switch edit {
      case .add(let item):
        let prepared = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
          try NewItemDefaults.prepared(item, now: now, random: random)
        }
        let isDeleted = (try? PrimaryKey(of: prepared)).map(deleted.contains) ?? false
        guard try keychain.insert(prepared, replacingExisting: isDeleted) != .kept else {
          throw KeyhaulError(.databaseDuplicate, "another \(item.kind.reportName) has the same primary key")
        }
        return [KeychainEntry(index: nil, item: prepared)]
      case .update(let rows, let changes):
        var changed: [KeychainEntry] = []
        for row in rows {
          guard let old = row.item else { continue }
          let new = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
            try changes.applied(to: old, now: now)
          }
          try keychain.replace(row: row.place.rowID, with: new)
          changed.append(KeychainEntry(new, at: row.place, index: row.index))
        }
        return changed
      case .delete(let rows):
        for row in rows { try keychain.remove(row: row.place.rowID, of: row.kind) }
        return []
      }
    }
  }

  private static func translatingRuleErrors<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ KeyhaulError(.malformed, $0.reason) }, body)
  }
}

/// The argument that names the keychain of an item command.
struct TargetKeychain: ParsableArguments {
  @Argument(
    help: "The device, the backup or the Simulator's keychain.", completion: .devicesAndFiles) var keychain: String

  init() {}

  func find(
    _ unlocking: BackupAccessOptions, _ databaseKeys: DatabaseKeyOptions? = nil, in session: Session
  ) throws(CommandError) -> ResolvedSource {
    let found = try SourceResolver(session, databaseKeys).keychain(keychain)
    if case .device(let device) = found { try unlocking.reject(for: device.name) }
    if case .dump(let dump) = found { try dump.reject(unlocking) }
    try databaseKeys?.check([found])
    return found
  }
}

extension TargetKeychain {
  /// Finds the keychain and opens it for a change.
  ///
  /// - Parameters:
  ///   - selection: The items to change.
  ///   - unlocking: The options for decrypting a backup.
  ///   - change: The destination of a changed backup.
  ///   - verb: The name of the command.
  ///   - isDryRun: Whether this is a dry run.
  func edit(
    _ selection: ItemSelection, _ unlocking: BackupAccessOptions, _ change: ChangeOptions, to verb: String,
    isDryRun: Bool, in session: Session
  ) throws(CommandError) -> any EditableKeychain {
    let found = try find(unlocking, in: session)
    if !found.isBackup { try change.reject(for: keychain) }
    return switch found {
    case .device(let device): EditableDevice(device, selection)
    case .backup(let archive):
      try EditableBackup(archive, selection, unlocking, change, to: verb, isDryRun: isDryRun, in: session)
    case .dump(let dump): try EditableSimulator(dump, selection)
    }
  }
}

extension KeychainEntry {
  /// Returns the entry with its position among all items of its keychain.
  func numbered(_ indexes: [RowReference: Int]) -> KeychainEntry {
    var result = self
    result.index = indexes[place]
    return result
  }
}

extension ItemSelection {
  /// Rejects `--app` for a keychain that does not state the access groups of apps.
  func requireNoApp(of name: String) throws(CommandError) {
    guard let app else { return }
    throw .usage(
      "--app \(app) applies only to devices", why: "\(name) does not show which access groups an app has",
      try: "--access-group GROUP")
  }
}

/// Creates errors for a backup whose items could not be changed.
enum ItemEditErrorText {
  /// Returns the error to show.
  ///
  /// - Parameters:
  ///   - error: The library's error.
  ///   - name: The backup's name.
  ///   - hasPassword: Whether the backup has a password. Without one, the keys of all classes are bound to its device.
  static func commandError(for error: ItemEditError, name: String, hasPassword: Bool) -> CommandError {
    let status = CommandExitStatus(error.category)
    let list = "keyhaul item find \(ShellQuoting.quote(name))"
    switch error.code {
    case .duplicate:
      return CommandError(
        status, "\(name) already has this item", why: "\(error.reason); nothing was changed",
        try: "other attributes; \"\(list)\" shows the existing item")
    case .neverInBackup(let reason):
      return CommandError(
        status, "no backup contains such an item",
        why: "\(reason.explanation.headline) (\(reason.rawValue)); nothing was changed",
        try: "another --protection, or keyhaul explain \(reason.rawValue)")
    case .classKeyMissing:
      return CommandError(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: hasPassword
          ? "--device-key-file PATH, or a --protection without -this-device"
          : "--device-key-file PATH: without a password, all classes of a backup are bound to its device")
    case .hardwareUnproven:
      return CommandError(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: "a --protection without -this-device, in a backup with a password")
    case .notAnItem:
      return CommandError(
        status, "the keychain does not accept this item", why: error.reason, try: "keyhaul item add --help")
    case .unknownContent, .failed:
      return CommandError(
        status, "cannot change \(name)", why: "\(error.reason); nothing was changed", try: error.advice)
    }
  }
}
