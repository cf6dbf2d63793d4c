import Backups
package import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
package import VirtualDevice

/// Exports a device's keychain for a backup, according to the export rules.
package enum BackupExporter {
  /// The first version of iOS for which Keyhaul writes backups.
  ///
  /// Source: libimobiledevice's and Apple's change of the backup format in iOS 10.2.
  static let firstWritableVersion = "10.2"

  /// Reads every row, encrypts the exportable items for a new keybag, and reports the items that are left out.
  ///
  /// - Parameters:
  ///   - session: A session of the unlocked device.
  ///   - password: The password; `nil` if the backup gets none. Only this device can then restore its keychain.
  ///   - rounds: The iterations of the slow derivation. Real devices use 10,000,000.
  ///   - listsExported: Whether the report names each item in the backup, which needs more memory.
  ///   - progress: Called with the progress of the derivation; if it returns `false`, the derivation ends.
  /// - Throws: Category `locked` if the class key of a row is not in memory, because a keychain is exported completely or
  ///   not at all; `refused` for a device whose system writes a different kind of backup; `failed` if the directory in
  ///   `TMPDIR` has no space for a large keychain.
  package static func prepare(
    _ session: DeviceSession, password: borrowing Secret?, rounds: Int = BackupKeybag.standardRounds,
    listsExported: Bool = true, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(KeyhaulError) -> PreparedBackup {
    try prepare(
      session, password: password, rounds: rounds, listsExported: listsExported, system: .real, progress: progress)
  }

  package static func prepare(
    _ session: DeviceSession, password: borrowing Secret?, rounds: Int, listsExported: Bool, system: FileSystem,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(KeyhaulError) -> PreparedBackup {
    try check(session)
    let environment = session.environment
    let deviceKey = try session.deviceKey()
    let bag: UnlockedKeybag
    do throws(DataProtectionError) {
      bag = try BackupKeybag.make(
        password: password, deviceKey: deviceKey, rounds: rounds, random: environment.random, progress: progress)
    } catch {
      throw KeyhaulError(error)
    }
    let isEncrypted = password != nil
    let keybag = bag.keybag
    let keys = bag.classKeys
    let spool = try spooling { () throws(KeyhaulError) in try SealedItemSpool(system: system) }
    let export = try export(
      session, sealing: keys, keeping: .encrypted(in: spool, isListed: listsExported), random: environment.random)
    let keychain = try spooling { () throws(KeyhaulError) in try spool.finish(keybagUUID: keybag.uuidText) }
    let contents = BackupContents(
      device: BackupDevice(session.record), date: environment.clock.now(), keybag: keybag, isEncrypted: isEncrypted,
      wasPasscodeSet: session.isPasscodeSet, keychain: keychain,
      applications: AppDirectory.identifiers(of: session.record.apps))
    return PreparedBackup(contents: contents, report: export.report, keys: keys)
  }

  /// Exports every row that the rules allow.
  ///
  /// - Throws: Category `locked` if the class key of a row is not in memory, which may have changed since the check; an
  ///   error if the encrypted items cannot be stored.
  static func export(
    _ session: DeviceSession, sealing keys: ClassKeys, keeping form: Export.Form,
    sharingMemoryWith items: [BackupItem] = [], random: any RandomSource
  ) throws(KeyhaulError) -> Export {
    var export = Export(random: random, deviceSyncs: session.record.isSyncing, keeping: form)
    export.sharedContents = SharedContents(items)
    let store = try session.keychain
    var lockedRows = LockedRows()
    try store.forEachRow(includingTombstones: true, keys: session.classKeys) { row in
      lockedRows.count(row)
      export.add(row, sealing: keys)
    }
    try lockedRows.check(session)
    if let failure = export.spoolFailure { throw .advisingTemporaryFolder(for: failure) }
    return export
  }

  /// Returns the result of a step that writes to the temporary file, with advice in the error if there is no space.
  private static func spooling<Value>(
    _ body: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting(KeyhaulError.advisingTemporaryFolder(for:), body)
  }

  /// Checks whether the device can be backed up now, before the user is asked for a password.
  ///
  /// - Throws: Category `refused` for a device whose system writes a different kind of backup; `locked` if the class key
  ///   of a row is not in memory.
  package static func check(_ session: DeviceSession) throws(KeyhaulError) {
    let version = session.record.productVersion
    guard version.canWriteBackups else {
      throw KeyhaulError(
        .unsupportedSystem, .refused, "the device does not write this kind of backup",
        reason: "it runs iOS \(version); this format requires iOS \(firstWritableVersion) or later",
        advice: .newerSystem(version: "\(firstWritableVersion)"))
    }
    try LockedRows.requireNone(on: session)
  }

  /// An export, row by row.
  struct Export {
    /// The form in which exported items are kept. If they are listed, the report contains their names.
    enum Form {
      /// Encrypted, as in a backup.
      case encrypted(in: SealedItemSpool, isListed: Bool)
      /// Decrypted, as a reader with all keys sees them.
      case decrypted(isListed: Bool)
    }

    let random: any RandomSource
    let deviceSyncs: Bool
    let form: Form
    /// The decrypted items by index, if they are kept.
    var items: [BackupItem] = []
    /// Items that are already in memory. An equal item is not stored a second time.
    var sharedContents = SharedContents([])
    /// An error of the cryptographic library that no item has caused.
    var libraryError: KeyhaulError?
    /// The reason why encrypted items could not be stored. No further item is encrypted.
    var spoolFailure: KeyhaulError?
    var report = ExportReport()

    init(random: any RandomSource, deviceSyncs: Bool, keeping form: Form) {
      self.random = random
      self.deviceSyncs = deviceSyncs
      self.form = form
    }

    /// Adds a row's item, or the reason why it stays on the device.
    mutating func add(_ row: KeychainRow, sealing keys: ClassKeys) {
      switch row.content {
      case .fault(let fault):
        let reportedItem = ExportReport.Item(
          identity: ItemDescriptor(undecryptable: row.summary.kind, accessGroup: row.summary.accessGroup),
          protection: row.summary.protection, rowID: row.summary.reference.rowID, isSynchronizable: nil,
          containsSecureEnclaveKey: nil)
        report.omissions.append(reportedItem.omission(because: Reason(fault), fault.reasonText))
      case .item(let item):
        let reportedItem = ExportReport.Item(
          identity: ItemDescriptor(item), protection: item.protection, rowID: row.summary.reference.rowID,
          isSynchronizable: item.isSynchronizable, containsSecureEnclaveKey: item.containsSecureEnclaveKey)
        let candidate = ExportCandidate(
          item: item, isAccessControlled: item[.accessControl] != nil, isAppClip: row.summary.isAppClip,
          deviceSyncs: deviceSyncs)
        add(candidate, reportedItem, reference: row.summary.persistentReference, sealing: keys)
      }
    }

    /// Adds an item in the chosen form, unless a rule excludes it.
    ///
    /// - Parameters:
    ///   - candidate: The item, with the properties that the rules examine.
    ///   - reportedItem: The item in the report.
    ///   - reference: The item's reference of 16 bytes in a backup. References of other lengths are ignored.
    ///   - keys: The class keys of the backup.
    mutating func add(
      _ candidate: ExportCandidate, _ reportedItem: ExportReport.Item, reference: [UInt8], sealing keys: ClassKeys
    ) {
      guard spoolFailure == nil else { return }
      let item = candidate.item
      if let reason = ExportExclusions.exclusionReason(for: candidate) {
        report.omissions.append(reportedItem.omission(because: reason))
        return
      }
      do throws(ItemCryptoError) {
        let reference = try? PersistentReference.uuid(item.kind, reference).serialized()
        switch form {
        case .encrypted(let spool, let isListed):
          store(try keys.seal(item, as: .backup, random: random), item.kind, reference, in: spool)
          if isListed { report.exported.append(reportedItem) }
        case .decrypted(let isListed):
          let (keyClass, opening) = try opening(of: item, sealing: keys)
          let backupItem = BackupItem(
            index: items.count, kind: item.kind, protection: item.protection, persistentReference: reference,
            keyClass: keyClass, classKey: nil, opening: opening)
          items.append(backupItem)
          if isListed { report.exported.append(backupItem.item.map(reportedItem.sharing) ?? reportedItem) }
        }
        report.exportedCount += 1
      } catch {
        report.omissions.append(reportedItem.omission(because: .malformed, error.reason))
      }
    }
  }
}

extension BackupExporter.Export {
  private mutating func store(_ blob: ItemBlob, _ kind: ItemKind, _ reference: [UInt8]?, in spool: SealedItemSpool) {
    do throws(KeyhaulError) {
      try spool.append(kind, blob: blob.serialized(), persistentReference: reference)
    } catch {
      spoolFailure = error
    }
  }

  /// Returns the item as it would be read from its blob. An item that certainly survives encoding and decoding is not
  /// encoded.
  private mutating func opening(
    of item: KeychainItem, sealing keys: ClassKeys
  ) throws(ItemCryptoError) -> (KeyClass, BackupItem.Opening) {
    if item.roundTripsExactly { return (try keys.classToSeal(for: item), .opened(sharedContents.shared(item))) }
    let (plaintext, keyClass) = try keys.plaintextToSeal(of: item)
    do throws(ItemCryptoError) {
      let decodedItem = try ClassKeys.item(in: plaintext, kind: item.kind, keyClass: keyClass)
      return (keyClass, .opened(sharedContents.shared(decodedItem)))
    } catch {
      do throws(KeyhaulError) {
        return (keyClass, .failed(try BackupItem.Failure(error, keyClass: keyClass)))
      } catch let failure {
        libraryError = failure
        return (keyClass, .failed(.tagMismatch))
      }
    }
  }
}

extension Reason {
  init(_ fault: RowFault) {
    switch fault {
    case .undecodable: self = .malformed
    // Only rows of the passcode class get here; other locked rows end the export.
    case .locked: self = .passcodeOnly
    case .keyUnavailable: self = .noClassKey
    }
  }
}

extension RowFault {
  var reasonText: String? {
    switch self {
    case .undecodable(let reason): reason
    case .locked: nil
    case .keyUnavailable(let keyClass): "the device has no usable key of class \(keyClass.displayName)"
    }
  }
}

extension BackupDevice {
  init(_ record: DeviceRecord) {
    self.init(
      identifier: record.udid, name: record.name, productType: record.productType,
      productVersion: record.productVersion.text, buildVersion: record.build, serialNumber: record.serialNumber)
  }
}

/// Items that are already in memory, such as the items of a backup. Equal items of a device share their memory.
struct SharedContents {
  private let items: [BackupItem]
  /// The position of the item that probably comes next: device and backup have the same order, except for added and
  /// removed items.
  private var nextPosition = 0
  /// The number of positions at which an equal item is looked for.
  private static let searchWidth = 64

  init(_ items: [BackupItem]) { self.items = items }

  /// Returns the equal item that is already in memory if it is at one of the next positions; otherwise the argument.
  mutating func shared(_ item: KeychainItem) -> KeychainItem {
    for position in nextPosition..<min(nextPosition + Self.searchWidth, items.count) {
      guard let sharedItem = items[position].item, sharedItem.hasSamePackedContent(as: item) else { continue }
      nextPosition = position + 1
      return sharedItem
    }
    return item
  }
}
