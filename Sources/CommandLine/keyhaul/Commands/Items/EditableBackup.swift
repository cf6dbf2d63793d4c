import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The keychain of a backup, decrypted with the backup's password and, if available, the source device's key.
struct EditableBackup: PreloadedKeychain {
  let items: SearchableItems
  let selection: ItemSelection
  private let loaded: LoadedBackup
  private let path: String
  private let opened: UnlockedBackup
  private let unlocker: BackupUnlocker
  private let key: BackupKey
  private let deviceKey: DeviceKeyCandidate?
  private let changeOptions: ChangeOptions
  private let target: BackupRewriter.Target

  /// Opens a backup for a change.
  ///
  /// - Throws: An error if the backup cannot be decrypted or rewritten.
  init(
    _ backup: ResolvedBackup, _ selection: ItemSelection, _ accessOptions: BackupAccessOptions, _ change: ChangeOptions,
    to verb: String, isDryRun: Bool, in session: Session
  ) throws(CommandError) {
    self.selection = selection
    changeOptions = change
    try change.check(differsFrom: backup.files + accessOptions.files, in: session)
    // The backup is rewritten next to the file that a link points to, not next to the link.
    path = URL(filePath: try backup.requirePath(for: "item \(verb)")).resolvingSymlinksInPath().path
    let onlyReads = isDryRun || change.output != nil
    loaded = try backup.open(onlyReads ? .reading : .writing, storage: accessOptions.storage, in: session)
    do throws(KeyhaulError) {
      try loaded.archive.requireUsable(for: .rewriting)
      try BackupRewriter.checkReencryption(of: loaded.archive)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    target = try change.target(for: loaded, isDryRun: isDryRun, in: session)
    unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    let availableKey = try unlocker.deviceKey()
    key = try unlocker.key(accessOptions.password)
    let (opened, chosenKey) = try unlocker.openChoosingKey(with: key, deviceKey: availableKey, for: .rewriting)
    self.opened = opened
    try Self.requireRecordedKeychain(opened, named: loaded.name)
    // With the key of a different device, changed items would be lost.
    deviceKey = opened.isSameDevice == false ? nil : chosenKey
    items = SearchableItems(opened, named: loaded.name)
  }

  /// Rejects a keychain file that differs from its recorded digest or size. Rewriting the file would also update the
  /// recorded digest and size, and hide that items may be missing.
  private static func requireRecordedKeychain(_ opened: UnlockedBackup, named name: String) throws(CommandError) {
    let keychainDamage = opened.damage.filter { damage in
      switch damage {
      case .keychainChanged, .keychainSize: true
      case .statusMissing, .classKeys, .finding: false
      }
    }
    guard !keychainDamage.isEmpty else { return }
    throw CommandError(
      .damaged, "\(name) is damaged, and nothing was changed",
      why: keychainDamage.map(\.description).joined(separator: "; "),
      try: "another copy; rewriting this copy would hide the damage")
  }

  func removeLeftovers() {
    if changeOptions.output == nil { BackupRewriter().removeLeftovers(of: loaded.archive, at: path) }
  }

  var ending: String { changeOptions.ending(for: loaded.name) }

  func remark(about item: KeychainItem) -> String {
    guard opened.hasPassword, item.protection?.isThisDeviceOnly == false else {
      return "can be decrypted only on the source device"
    }
    return "can be decrypted on any device with the backup's password"
  }

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, reportedAs change: CommittedChange, in session: Session
  ) throws(CommandError) -> [KeychainEntry] {
    let bytes: [UInt8]
    let keys = try unlocker.classKeys(with: key, deviceKey: deviceKey)
    var changedEntries: [KeychainEntry] = []
    do throws(ItemEditError) {
      let environment = DeviceEnvironment.interruptible
      let keychain = try EditedKeychain(
        opened, keys: keys, now: environment.clock.now(), random: environment.random)
      switch edit {
      case .add(let item):
        let (stored, index) = try keychain.add(item)
        changedEntries = [KeychainEntry(index: index, item: stored)]
      case .update(let entries, let changes):
        let changedItems = try keychain.update(entries.map { Int($0.rowReference.rowID) }, with: changes)
        changedEntries = zip(entries, changedItems).map { entry, item in KeychainEntry(index: entry.index, item: item) }
      case .delete(let entries): keychain.remove(entries.map { Int($0.rowReference.rowID) })
      }
      bytes = try keychain.serialized()
    } catch {
      throw ItemEditErrorText.commandError(for: error, name: name, hasPassword: opened.hasPassword)
    }
    if !isDryRun { try write(bytes, change, in: session) }
    return changedEntries
  }

  private func write(_ bytes: [UInt8], _ change: CommittedChange, in session: Session) throws(CommandError) {
    let keys = try unlocker.classKeys(with: key, deviceKey: deviceKey)
    let rewrittenBackup = try session.rewriting(
      loaded, to: changeOptions.output, changeOptions.committedChange(inPlace: change)
    ) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.replaceKeychain(
        of: loaded.archive, at: path, with: bytes, keys: keys, to: target, progress: progress)
    }
    session.warnIfOldBackupRemains(rewrittenBackup.leftover)
    session.warn(aboutUnrelatedFiles: rewrittenBackup.unrelatedFiles)
  }
}
