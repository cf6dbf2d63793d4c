import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A change of a keychain.
enum ItemEdit {
  case add(KeychainItem)
  case update([KeychainEntry], ItemChanges)
  case delete([KeychainEntry])
}

/// A keychain whose items a command changes: that of a device, of a backup or of a Simulator.
///
/// A command asks for the entries that its user means, and performs its change after the user has agreed. A change is made
/// completely or not at all.
protocol EditableKeychain {
  /// The keychain's name in messages.
  var name: String { get }
  /// "on" a device, "in" a backup.
  var preposition: String { get }
  /// What a sentence about a change ends with: where the changed copy is; empty if the keychain itself is changed.
  var ending: String { get }
  /// A note to show before the user is asked; `nil` if there is nothing to note.
  var note: String? { get }
  /// The document of its items, without secrets.
  var document: ItemDocument { get }
  /// The number of items that cannot be decrypted, so that a new item may be one of them.
  var hiddenCount: Int { get }

  /// A sentence about the devices that an added item can move to.
  func reach(of item: KeychainItem) -> String

  /// Refuses attributes of a new item that this keychain cannot give it.
  func check(_ attributes: ItemAttributeOptions) throws(CommandFailure)

  /// Returns the entries that the user means.
  ///
  /// - Parameter changes: The intended changes; `nil` if the items are to be deleted.
  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry]

  /// Whether changes leave each of these entries as it is.
  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool

  /// Removes what killed commands left, if nothing is to be changed.
  func removeLeftovers()

  /// Changes the keychain.
  ///
  /// - Parameters:
  ///   - isRehearsed: Whether to do everything except writing.
  ///   - done: The state after the change, for messages.
  /// - Returns: The items that were added or changed, as they are then.
  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws -> [KeychainEntry]
}

/// A keychain that is changed as a whole: its items were read, and a change is written at once.
protocol WholeEditableKeychain: EditableKeychain {
  var items: ListedItems { get }
  var selection: ItemSelection { get }
}

extension EditableKeychain {
  var ending: String { "" }
}

extension WholeEditableKeychain {
  var name: String { items.name }
  var preposition: String { "in" }
  var document: ItemDocument { items.document(revealsSecrets: false) }
  var hiddenCount: Int { items.hidden.count }

  func check(_ attributes: ItemAttributeOptions) throws(CommandFailure) {
    try selection.requireNoApp(of: name)
    guard attributes.accessGroup == nil else { return }
    throw .usage(
      "no access group was given for the item", why: "only a device can choose one; \(name) cannot",
      try: "--access-group GROUP")
  }

  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry] {
    try selection.requireNoApp(of: name)
    let entries = items.meant(by: selection)
    items.noteHidden(besides: entries, for: selection, in: session)
    return entries
  }

  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool {
    entries.compactMap(\.item).allSatisfy { changes.isNoOp(for: $0) }
  }
}

/// The keychain of a device. The device is not locked while the user decides.
final class EditableDevice: EditableKeychain {
  private let device: FoundDevice
  private let selection: ItemSelection
  /// The device's revision, and the positions of the entries, when the user was asked.
  private var agreed: (revision: String, indexes: [RowReference: Int])?

  init(_ device: FoundDevice, _ selection: ItemSelection) {
    self.device = device
    self.selection = selection
  }

  var name: String { device.name }
  var preposition: String { "on" }
  var note: String? { nil }
  var document: ItemDocument { ItemDocument(source: ("device", name), revealsSecrets: false) }
  var hiddenCount: Int { 0 }

  func reach(of item: KeychainItem) -> String {
    guard let protection = item.protection, protection != .whenPasscodeSetThisDeviceOnly
    else { return "never leaves this device" }
    guard item[.accessControl] == nil else { return "in no backup" }
    return protection.isThisDeviceOnly ? "stays on this device" : "moves with an encrypted backup"
  }

  func check(_ attributes: ItemAttributeOptions) {}

  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry] {
    try device.hold(.reading) { openDevice in
      if let changes {
        try ItemFailure.checkGroups(
          [changes.attributes[.accessGroup]?.stringValue].compactMap(\.self), of: selection.app, on: openDevice)
      }
      let rows = try selection.rows(on: openDevice, to: changes == nil ? "delete" : "change")
      if changes != nil, rows.contains(where: \.isLocked) { throw ItemFailure.locked("change", on: openDevice) }
      let indexes = try openDevice.keychain.positions(of: Set(rows.map(\.place)))
      agreed = (openDevice.record.revision, indexes)
      return rows.map { $0.numbered(indexes) }
    }
  }

  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool {
    guard entries.compactMap(\.item).allSatisfy({ changes.attributesAreNoOp(for: $0) }) else { return false }
    guard !changes.secrets.isEmpty else { return true }
    return try device.hold(.reading) { openDevice in
      let found = try selection.found(on: openDevice, wantsSecret: true).compactMap(\.item)
      return found.count == entries.count && found.allSatisfy { changes.isNoOp(for: $0) }
    }
  }

  func removeLeftovers() {}

  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws -> [KeychainEntry] {
    if case .delete = edit, isRehearsed { return [] }
    return try device.hold(.writing) { openDevice in
      if let agreed { try openDevice.requireUnchanged(since: agreed.revision) }
      switch edit {
      case .add(let item):
        let stored =
          isRehearsed
          ? try add(item, on: openDevice, isRehearsed: true)
          : try session.changing(done) { () throws(CommandFailure) in
            try add(item, on: openDevice, isRehearsed: false)
          }
        let indexes = session.isJSON ? try openDevice.keychain.positions(of: [stored.summary.reference]) : [:]
        return [KeychainEntry(stored).numbered(indexes)]
      case .update(let entries, let changes):
        guard !isRehearsed else {
          try update(changes, on: openDevice, isRehearsed: true)
          return []
        }
        try session.changing(done) { () throws(CommandFailure) in
          try update(changes, on: openDevice, isRehearsed: false)
        }
        return try found(entries, on: openDevice)
      case .delete:
        try session.changing(done) { () throws(CommandFailure) in
          do throws(KeyhaulError) { try openDevice.delete(selection.query, as: selection.app) } catch {
            throw ItemFailure.changing(error, "delete", on: openDevice)
          }
        }
        return []
      }
    }
  }

  private func add(
    _ item: KeychainItem, on openDevice: DeviceSession, isRehearsed: Bool
  ) throws(CommandFailure) -> StoredItem {
    let app = selection.app
    try ItemFailure.checkGroups([item.accessGroup].compactMap(\.self), of: app, on: openDevice)
    do throws(KeyhaulError) {
      return isRehearsed ? try openDevice.validateAdding(item, as: app) : try openDevice.add(item, as: app)
    } catch {
      throw ItemFailure.adding(item, error, to: openDevice.name)
    }
  }

  private func update(
    _ changes: ItemChanges, on openDevice: DeviceSession, isRehearsed: Bool
  ) throws(CommandFailure) {
    // An update without a condition would delete a row that cannot be decrypted, as a device does. It is left as it is.
    var query = selection.query
    let condition = query.condition
    query.condition = { condition?($0) ?? true }
    do throws(KeyhaulError) {
      if isRehearsed {
        try openDevice.validateUpdating(query, with: changes, as: selection.app)
      } else {
        try openDevice.update(query, with: changes, as: selection.app)
      }
    } catch {
      throw ItemFailure.changing(error, "change", on: openDevice)
    }
  }

  /// Returns the entries as they are now.
  private func found(
    _ entries: [KeychainEntry], on openDevice: DeviceSession
  ) throws(CommandFailure) -> [KeychainEntry] {
    do throws(KeyhaulError) {
      var changed: [KeychainEntry] = []
      for entry in entries { changed += KeychainEntry.all(of: try openDevice.find(ItemQuery(row: entry.place))) }
      return changed.map { $0.numbered(agreed?.indexes ?? [:]) }
    } catch {
      throw ItemFailure.finding(error, on: openDevice)
    }
  }
}

/// The items of a backup that is changed: opened with its password and, where there is one, its device's key.
struct EditableBackup: WholeEditableKeychain {
  let items: ListedItems
  let selection: ItemSelection
  private let named: NamedArchive
  private let path: String
  private let opened: UnlockedBackup
  private let unlocker: ArchiveUnlocker
  private let key: BackupKey
  private let hardware: HardwareKey?
  private let change: ChangeOptions
  private let target: BackupRewriter.Target

  /// - Throws: What keeps the backup from being opened, and from being rewritten.
  init(
    _ found: FoundArchive, _ selection: ItemSelection, _ unlocking: UnlockingOptions, _ change: ChangeOptions,
    to verb: String, isRehearsed: Bool, in session: Session
  ) throws(CommandFailure) {
    self.selection = selection
    self.change = change
    try change.check(differsFrom: found.files + unlocking.files, in: session)
    // Beside a link stands another file than beside what it points to.
    path = URL(filePath: try found.requirePath(for: "item \(verb)")).resolvingSymlinksInPath().path
    let isRead = isRehearsed || change.output != nil
    named = try found.open(isRead ? .reading : .writing, storage: unlocking.storage, in: session)
    do throws(KeyhaulError) {
      try named.archive.require(.rewriting)
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    target = try change.target(for: named, isRehearsed: isRehearsed, in: session)
    unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    let given = try unlocker.hardwareKey()
    key = try unlocker.key(unlocking.password)
    opened = try unlocker.open(with: key, given, for: .rewriting)
    try Self.requireKeychainAsRecorded(opened, named.name)
    hardware = opened.isSameDevice == false ? given?.otherwise : given
    items = ListedItems(opened, named: named.name)
  }

  /// Written again, the keychain file gets a digest and a size that fit: nothing would say any more that items may be missing.
  private static func requireKeychainAsRecorded(_ opened: UnlockedBackup, _ name: String) throws(CommandFailure) {
    let lost = opened.damage.filter { damage in
      switch damage {
      case .keychainChanged, .keychainSize: true
      case .statusMissing, .classKeys, .finding: false
      }
    }
    guard !lost.isEmpty else { return }
    throw CommandFailure(
      .damaged, "\(name) is damaged, and nothing was changed", why: lost.map(\.description).joined(separator: "; "),
      try: "another copy; rewriting this copy would hide the damage")
  }

  func removeLeftovers() {
    if change.output == nil { BackupRewriter().removeLeftovers(of: named.archive, at: path) }
  }

  var ending: String { change.ending(for: named.name) }

  func reach(of item: KeychainItem) -> String {
    guard opened.hasPassword, item.protection?.isThisDeviceOnly == false else {
      return "can be decrypted only on the source device"
    }
    return "can be decrypted on any device with the backup's password"
  }

  var note: String? { nil }

  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [KeychainEntry] {
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
      throw ItemEditFailure.of(error, name: name, hasPassword: opened.hasPassword)
    }
    if !isRehearsed { try write(bytes, done, in: session) }
    return changed
  }

  private func write(_ bytes: [UInt8], _ done: DoneChange, in session: Session) throws(CommandFailure) {
    let keys = try unlocker.classKeys(with: key, hardware)
    let written = try session.rewriting(named, to: change.output, change.done(done)) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.replaceKeychain(
        of: named.archive, at: path, with: bytes, keys: keys, to: target, progress: progress)
    }
    session.settleReplaced(written.leftover)
    session.warn(ofForeignFiles: written.unrelatedFiles)
  }
}

/// The items of a Simulator's keychain that is changed.
struct EditableSimulator: WholeEditableKeychain {
  let items: ListedItems
  let selection: ItemSelection
  private let simulator: FoundSimulator
  /// The primary keys of deleted items, whose place a new item can take.
  private let deleted: Set<PrimaryKey>

  /// - Throws: `.refused` for a dump.
  init(_ found: FoundDump, _ selection: ItemSelection) throws(CommandFailure) {
    self.selection = selection
    simulator = try FoundSimulator(found)
    items = ListedItems(found)
    deleted = Set(found.dump.items.compactMap(\.item).filter(\.isTombstone).compactMap { try? PrimaryKey(of: $0) })
  }

  func reach(of item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  var note: String? { nil }

  func removeLeftovers() {}

  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [KeychainEntry] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(done, isRehearsed: isRehearsed, in: session) {
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

/// The keychain that a verb of items means.
struct TargetKeychain: ParsableArguments {
  @Argument(
    help: "The device, the backup or the Simulator's keychain.", completion: .devicesAndFiles) var keychain: String

  init() {}

  func find(
    _ unlocking: UnlockingOptions, _ databaseKeys: DatabaseKeyOptions? = nil, in session: Session
  ) throws(CommandFailure) -> FoundKeychain {
    let found = try ArgumentFinder(session, databaseKeys).keychain(keychain)
    if case .device(let device) = found { try unlocking.refuse(for: device.name) }
    if case .dump(let dump) = found { try dump.refuse(unlocking) }
    try databaseKeys?.check([found])
    return found
  }
}

extension TargetKeychain {
  /// Finds the keychain and opens it for a change.
  ///
  /// - Parameters:
  ///   - selection: The items that the user means.
  ///   - change: Where a changed backup is written.
  ///   - verb: The name of the command.
  ///   - isRehearsed: Whether the command only shows what it would do.
  func edit(
    _ selection: ItemSelection, _ unlocking: UnlockingOptions, _ change: ChangeOptions, to verb: String,
    isRehearsed: Bool, in session: Session
  ) throws(CommandFailure) -> any EditableKeychain {
    let found = try find(unlocking, in: session)
    if !found.isArchive { try change.refuse(for: keychain) }
    return switch found {
    case .device(let device): EditableDevice(device, selection)
    case .archive(let archive):
      try EditableBackup(archive, selection, unlocking, change, to: verb, isRehearsed: isRehearsed, in: session)
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
  /// Refuses to act as an app where no device says which groups it has.
  func requireNoApp(of name: String) throws(CommandFailure) {
    guard let app else { return }
    throw .usage(
      "--app \(app) applies only to devices", why: "\(name) does not show which access groups an app has",
      try: "--access-group GROUP")
  }
}

/// The wording of failures to change a backup's items, with the command to type.
enum ItemEditFailure {
  /// - Parameter hasPassword: Whether the backup has a password. Without one, the keys of all classes are bound to its device.
  static func of(_ error: ItemEditError, name: String, hasPassword: Bool) -> CommandFailure {
    let status = CommandStatus(error.category)
    let list = "keyhaul item find \(ShellQuoting.quote(name))"
    switch error.code {
    case .duplicate:
      return CommandFailure(
        status, "\(name) already has this item", why: "\(error.reason); nothing was changed",
        try: "other attributes; \"\(list)\" shows the existing item")
    case .neverInBackup(let reason):
      return CommandFailure(
        status, "no backup contains such an item",
        why: "\(reason.explanation.headline) (\(reason.rawValue)); nothing was changed",
        try: "another --protection, or keyhaul explain \(reason.rawValue)")
    case .classKeyMissing:
      return CommandFailure(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: hasPassword
          ? "--device-key-file PATH, or a --protection without -this-device"
          : "--device-key-file PATH: without a password, all classes of a backup are bound to its device")
    case .hardwareUnproven:
      return CommandFailure(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: "a --protection without -this-device, in a backup with a password")
    case .notAnItem:
      return CommandFailure(
        status, "the keychain does not accept this item", why: error.reason, try: "keyhaul item add --help")
    case .unknownContent, .failed:
      return CommandFailure(
        status, "cannot change \(name)", why: "\(error.reason); nothing was changed", try: error.advice)
    }
  }
}
