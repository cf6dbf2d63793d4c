import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One change of a keychain that is not a device's.
enum ItemEdit {
  case add(KeychainItem)
  case update([ItemRow], ItemChanges)
  case delete([ItemRow])
}

/// A keychain that is changed as a whole: what it holds was read, and a change is written at once or not at all.
protocol EditableItems {
  var items: ListedItems { get }
  /// "a backup", "a Simulator": how far an item that is added there gets, in words.
  func reach(of item: KeychainItem) -> String
  /// What is to be said before anybody is asked; `nil` for nothing.
  var note: String? { get }

  /// Removes what runs that were killed left, where nothing is to be changed.
  func sweepLeftovers()

  /// Changes it.
  ///
  /// - Parameters:
  ///   - isRehearsed: Whether everything is done but the writing.
  ///   - done: What is so once it was written.
  /// - Returns: The items that were added or changed, as they are then, with their positions.
  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [(row: ItemRow, index: Int?)]
}

extension EditableItems {
  var name: String { items.name }

  func sweepLeftovers() {}
}

/// The items of a backup that is changed: opened with its password and, where there is one, its device's key.
struct BackupItems: EditableItems {
  let items: ListedItems
  private let named: NamedArchive
  private let path: String
  private let opened: OpenedArchive
  private let unlocker: ArchiveUnlocker
  private let key: ArchiveKey
  private let hardware: HardwareKey?

  /// - Throws: What keeps the backup from being opened, and from being rewritten.
  init(
    _ found: FoundArchive, _ unlocking: UnlockingOptions, to verb: String, isRehearsed: Bool, in session: Session
  ) throws(CommandFailure) {
    // Beside a link stands another file than beside what it points to.
    path = URL(filePath: try found.requirePath(for: "item \(verb)")).resolvingSymlinksInPath().path
    named = try found.open(isRehearsed ? .reading : .writing, storage: unlocking.storage, in: session)
    do throws(BackupArchiveError) {
      try named.archive.require(.rewriting)
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    let given = try unlocker.hardwareKey()
    key = try unlocker.key(unlocking.password)
    opened = try unlocker.open(with: key, given, for: .rewriting)
    try Self.requireKeychainAsRecorded(opened, named.name)
    hardware = opened.isSameDevice == false ? given?.otherwise : given
    items = ListedItems(opened, named: named.name)
  }

  /// Written again, the keychain file gets a digest and a size that fit: nothing would say any more that items may be missing.
  private static func requireKeychainAsRecorded(_ opened: OpenedArchive, _ name: String) throws(CommandFailure) {
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

  func sweepLeftovers() { BackupRewriter().sweepLeftovers(of: named.archive, at: path) }

  func reach(of item: KeychainItem) -> String {
    guard opened.hasPassword, item.protection?.isThisDeviceOnly == false else {
      return "can be decrypted only on the source device"
    }
    return "can be decrypted on any device with the backup's password"
  }

  var note: String? { nil }

  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [(row: ItemRow, index: Int?)] {
    let bytes: [UInt8]
    let keys = try unlocker.classKeys(with: key, hardware)
    var changed: [(row: ItemRow, index: Int?)] = []
    do throws(ItemEditError) {
      let environment = DeviceEnvironment.interruptible
      let keychain = try EditedKeychain(
        opened, keys: keys, now: environment.clock.now(), random: environment.random)
      switch edit {
      case .add(let item):
        let (stored, index) = try keychain.add(item)
        changed = [(ItemRow(stored, at: RowReference(kind: stored.kind, rowID: Int64(index))), index)]
      case .update(let rows, let changes):
        let new = try keychain.update(rows.map { Int($0.reference.rowID) }, with: changes)
        changed = zip(rows, new).map { row, item in
          (ItemRow(item, at: row.reference), Int(row.reference.rowID))
        }
      case .delete(let rows): keychain.remove(rows.map { Int($0.reference.rowID) })
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
    let written = try session.rewriting(named, done) { (rewriter, progress) throws(BackupArchiveError) in
      try rewriter.replaceKeychain(of: named.archive, at: path, with: bytes, keys: keys, progress: progress)
    }
    session.settleReplaced(written.leftover)
  }
}

/// The items of a Simulator's keychain that is changed.
struct SimulatorItems: EditableItems {
  let items: ListedItems
  private let simulator: FoundSimulator
  /// Of marks of deleted items, which make room for new ones.
  private let deleted: Set<PrimaryKey>

  /// - Throws: `.refused` for a dump.
  init(_ found: FoundDump) throws(CommandFailure) {
    simulator = try FoundSimulator(found)
    items = ListedItems(found)
    deleted = Set(found.dump.items.compactMap(\.item).filter(\.isTombstone).compactMap { try? PrimaryKey(of: $0) })
  }

  func reach(of item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  var note: String? { SimulatorNote.untried }

  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [(row: ItemRow, index: Int?)] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(done, isRehearsed: isRehearsed, in: session) {
      (keychain) throws(KeychainDatabaseError) in
      switch edit {
      case .add(let item):
        let prepared = try Self.byRule { () throws(KeychainRuleError) in
          try NewItem.prepared(item, now: now, random: random)
        }
        let isDeleted = (try? PrimaryKey(of: prepared)).map(deleted.contains) ?? false
        guard try keychain.put(prepared, replacing: isDeleted) != .kept else {
          throw KeychainDatabaseError(.duplicate, "another \(item.kind.reportName) has the same primary key")
        }
        return [(ItemRow(prepared, at: RowReference(kind: item.kind, rowID: 0)), nil)]
      case .update(let rows, let changes):
        var changed: [(row: ItemRow, index: Int?)] = []
        for row in rows {
          guard let old = row.item else { continue }
          let new = try Self.byRule { () throws(KeychainRuleError) in try changes.applied(to: old, now: now) }
          try keychain.replace(row: row.reference.rowID, with: new)
          changed.append((ItemRow(new, at: row.reference), items.indexes[row.reference]))
        }
        return changed
      case .delete(let rows):
        for row in rows { try keychain.remove(row: row.reference.rowID, of: row.kind) }
        return []
      }
    }
  }

  private static func byRule<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeychainDatabaseError) -> Value {
    do throws(KeychainRuleError) { return try body() } catch { throw KeychainDatabaseError(.malformed, error.reason) }
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

extension ItemSelection {
  /// Refuses to act as an app where no device says which groups it has.
  func requireNoApp(of name: String) throws(CommandFailure) {
    guard let app else { return }
    throw .usage(
      "--app \(app) applies only to devices", why: "\(name) does not show which access groups an app has",
      try: "--access-group GROUP")
  }
}

/// Why the items of a backup could not be changed, with what to type.
enum ItemEditFailure {
  /// - Parameter hasPassword: Of the backup; without one the keys of all its classes are bound to its device.
  static func of(_ error: ItemEditError, name: String, hasPassword: Bool) -> CommandFailure {
    let status = CommandStatus(error.category)
    let list = "keyhaul item find \(ShellWord.quoted(name))"
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
