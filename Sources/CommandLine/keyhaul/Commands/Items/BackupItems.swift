import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The items of a backup that is changed: opened with its password and, where there is one, its device's key.
struct BackupItems: EditableItems {
  let items: ListedItems
  private let named: NamedArchive
  private let path: String
  private let opened: OpenedArchive
  private let unlocker: ArchiveUnlocker
  private let key: HeldKey
  private let hardware: HardwareKey?

  private final class HeldKey: Sendable {
    let key: ArchiveKey
    init(_ key: consuming ArchiveKey) { self.key = key }
  }

  /// - Throws: What keeps the backup from being opened, and from being rewritten.
  init(_ found: FoundArchive, _ unlocking: UnlockingOptions, to verb: String, in session: Session)
    throws(CommandFailure)
  {
    // Beside a link stands another file than beside what it points to.
    path = URL(filePath: try found.requirePath(for: "item \(verb)")).resolvingSymlinksInPath().path
    named = try found.open(storage: unlocking.storage, in: session)
    do throws(BackupArchiveError) {
      try named.archive.require(.rewriting)
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    let given = try unlocker.hardwareKey()
    key = HeldKey(try unlocker.key(unlocking.password))
    opened = try unlocker.open(with: key.key, given, for: .rewriting)
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
    let keys = try unlocker.classKeys(with: key.key, hardware)
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
    try Interruption.check()
    let keys = HandedOver(try unlocker.classKeys(with: key.key, hardware))
    do throws(BackupArchiveError) {
      try session.progress("Writing \(name)", phase: "write") { (report) throws(BackupArchiveError) in
        try session.changing(done) { () throws(BackupArchiveError) in
          guard let keys = keys.take() else { return }
          let written = try BackupRewriter().replaceKeychain(
            of: named.archive, at: path, with: bytes, keys: keys, progress: report.orInterrupted)
          session.settleReplaced(written.leftover)
        }
      }
    } catch {
      try Interruption.check()
      var failure = CommandFailure(archive: error, name: name)
      if error.code == .occupied { failure.advice = "move it out of the folder" }
      throw failure
    }
  }
}
