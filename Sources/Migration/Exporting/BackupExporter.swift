public import ArchivedKeychain
public import BackupArchive
public import BackupWriting
public import DataProtection
public import KeychainFormats
public import KeychainRules
import KeychainStore
public import VirtualDevice

/// What a backup takes along and what it leaves on the device.
public struct ExportReport: Sendable {
  /// One item of the device.
  public struct Item: Sendable, Hashable {
    /// The names that it is known by; sealed where its row does not open.
    public let identity: ItemIdentity
    /// The class that protects it; `nil` where the column has no known one.
    public let protection: ProtectionClass?
    /// Number of its row in the table of its kind.
    public let rowID: Int64
    /// Whether it is marked to synchronize; `nil` where its row does not open.
    public let isSynchronizable: Bool?
    /// Whether its value has the form of a key of the Secure Enclave; `nil` where its row does not open.
    public let holdsEnclaveKey: Bool?

    /// The same with its names taken from an item that is held as long as this is.
    func sharing(_ item: KeychainItem) -> Item {
      Item(
        identity: .sharing(item), protection: protection, rowID: rowID,
        isSynchronizable: isSynchronizable, holdsEnclaveKey: holdsEnclaveKey)
    }
  }

  /// An item that the backup leaves on the device.
  public struct LeftOut: Sendable, Hashable {
    /// The item.
    public let item: Item
    /// The rule that leaves it out, or what is wrong with its row.
    public let reason: Reason
    /// Why it cannot be read, where that is the reason.
    public let detail: String?
  }

  /// The items that are in the backup, by their positions in it.
  public internal(set) var exported: [Item] = []
  /// The rows that stay on the device, tombstones among them.
  public internal(set) var leftOut: [LeftOut] = []

  /// Items that stay on the device; a deleted item's mark is none to miss.
  public var missing: [LeftOut] { leftOut.filter { $0.reason != .deleted } }
  /// Marks of deleted items that stay on the device, counted apart everywhere.
  public var tombstones: [LeftOut] { leftOut.filter { $0.reason == .deleted } }
  /// Items of the device, tombstones that stay at home apart.
  public var total: Int { exported.count + missing.count }
}

/// A keychain sealed for a new keybag, ready to be written.
public struct PreparedBackup: ~Copyable, Sendable {
  /// What is about to be written: the device, the keybag and the sealed keychain.
  public let contents: BackupContents
  /// What the backup takes along and what it leaves.
  public let report: ExportReport
  let keys: ClassKeys

  /// Writes it, whole or not at all.
  ///
  /// - Throws: What the writer reports: something stands there, no space, no permission.
  public borrowing func write(
    to destination: ArchiveDestination, replace: Bool = false, random: some RandomSource = SystemRandomSource()
  ) throws(MigrationError) -> WrittenBackup {
    try write(with: BackupWriter(), to: destination, replace: replace, random: random)
  }

  package borrowing func write(
    with writer: BackupWriter, to destination: ArchiveDestination, replace: Bool,
    random: some RandomSource = SystemRandomSource()
  ) throws(MigrationError) -> WrittenBackup {
    do throws(BackupArchiveError) {
      return try writer.write(contents, keys: keys, random: random, to: destination, replace: replace)
    } catch {
      throw MigrationError(error)
    }
  }
}

/// Takes a device's keychain out for a backup, as the export rules allow.
public enum BackupExporter {
  /// The first version whose backups this project writes.
  ///
  /// Source: libimobiledevice's and Apple's change of the backup format in iOS 10.2.
  static let firstWritableVersion = "10.2"

  /// Reads every row, seals what may leave for a new keybag, and says what stays.
  ///
  /// - Parameters:
  ///   - session: A hold on the device, which has to be unlocked.
  ///   - password: `nil` for a backup without one, which only this device can restore its keychain from.
  ///   - rounds: Of the slow derivation; every real device asks for 10,000,000.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: Category `locked` where a row is locked: no half keychain is ever exported. `refused` for a device whose
  ///   system writes another kind of backup.
  public static func prepare(
    _ session: DeviceSession, password: borrowing Secret?, rounds: Int = BackupKeybag.standardRounds,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(MigrationError) -> PreparedBackup {
    try check(session)
    let environment = session.environment
    let deviceKey = try reporting { () throws(VirtualDeviceError) in try session.deviceKey() }
    let bag: UnlockedKeybag
    do throws(DataProtectionError) {
      bag = try BackupKeybag.make(
        password: password, deviceKey: deviceKey, rounds: rounds, random: environment.random, progress: progress)
    } catch {
      throw MigrationError(error)
    }
    let isEncrypted = password != nil
    let keybag = bag.keybag
    let keys = bag.takeClassKeys()
    let export = try export(session, sealing: keys, random: environment.random)
    let file = KeychainBackupFile(keybagUUID: keybag.uuidText, entries: export.entries)
    let bytes = try reporting { () throws(FormatError) in try file.serialized() }
    let contents = BackupContents(
      device: BackupDevice(session.record), date: environment.clock.now(), keybag: keybag, isEncrypted: isEncrypted,
      wasPasscodeSet: session.isPasscodeSet, keychainFile: bytes,
      applications: AppDirectory.identifiers(of: session.record.apps))
    return PreparedBackup(contents: contents, report: export.report, keys: keys)
  }

  /// Takes every row of the device as far as the rules let it go.
  ///
  /// - Throws: Category `locked` where a row is: the keys may have gone since the device was looked at.
  static func export(
    _ session: DeviceSession, sealing keys: borrowing ClassKeys, keeping form: Export.Form = .sealed,
    besides known: [ArchivedItem] = [], random: any RandomSource
  ) throws(MigrationError) -> Export {
    var export = Export(random: random, deviceSyncs: session.record.isSyncing, keeping: form)
    export.known = KnownContents(known)
    let store = try reporting { () throws(VirtualDeviceError) in try session.keychain }
    var locked = LockedRows()
    try reporting { () throws(KeychainStoreError) in
      try store.forEachRow(includingTombstones: true, keys: session.classKeys) { row in
        locked.note(row)
        export.take(row, sealing: keys)
      }
    }
    try locked.check(session)
    return export
  }

  /// Whether the device can be backed up now, before anyone is asked for a password.
  ///
  /// - Throws: As `prepare` does.
  public static func check(_ session: DeviceSession) throws(MigrationError) {
    let version = session.record.productVersion
    guard version.canWriteBackups else {
      throw MigrationError(
        .unsupportedSystem, .refused, "it does not write this kind of backup",
        reason: "it runs iOS \(version); this format begins with iOS \(firstWritableVersion)",
        advice: .newerSystem(version: "\(firstWritableVersion)"))
    }
    try LockedRows.requireNone(on: session)
  }

  /// Goes through the rows one by one.
  struct Export {
    /// What is kept of an item that the rules let go.
    enum Form {
      /// As a backup holds it.
      case sealed
      /// As whoever has every key reads it in the backup.
      case opened
      /// The same without a list of what is exported, for whoever has the items.
      case openedAlone
    }

    let random: any RandomSource
    let deviceSyncs: Bool
    let form: Form
    /// The sealed items, where those are kept.
    var entries: [KeychainBackupFile.Entry] = []
    /// The same items opened, by their position, where they are kept so.
    var items: [ArchivedItem] = []
    /// What is held already, and not held again.
    var known = KnownContents([])
    /// That the cryptography itself failed, which is no item's fault.
    var fault: ArchivedKeychainError?
    var report = ExportReport()

    init(random: any RandomSource, deviceSyncs: Bool, keeping form: Form) {
      self.random = random
      self.deviceSyncs = deviceSyncs
      self.form = form
    }

    mutating func take(_ row: KeychainRow, sealing keys: borrowing ClassKeys) {
      switch row.content {
      case .fault(let fault):
        let item = ExportReport.Item(
          identity: ItemIdentity(sealed: row.summary.kind, accessGroup: row.summary.accessGroup),
          protection: row.summary.protection, rowID: row.summary.reference.rowID, isSynchronizable: nil,
          holdsEnclaveKey: nil)
        report.leftOut.append(.init(item: item, reason: Reason(fault), detail: fault.reasonText))
      case .item(let item):
        let entry = ExportReport.Item(
          identity: ItemIdentity(item), protection: item.protection, rowID: row.summary.reference.rowID,
          isSynchronizable: item.isSynchronizable, holdsEnclaveKey: item.holdsEnclaveKey)
        let candidate = ExportCandidate(
          item: item, isAccessControlled: item[.accessControl] != nil, isAppClip: row.summary.isAppClip,
          deviceSyncs: deviceSyncs)
        take(candidate, entry, reference: row.summary.persistentReference, sealing: keys)
      }
    }

    /// Seals an item, unless a rule leaves it out.
    ///
    /// - Parameter reference: The sixteen bytes that a backup has beside it; none for another number of them.
    mutating func take(
      _ candidate: ExportCandidate, _ entry: ExportReport.Item, reference: [UInt8], sealing keys: borrowing ClassKeys
    ) {
      let item = candidate.item
      if let reason = ExportRules.reasonToLeaveOut(candidate) {
        report.leftOut.append(.init(item: entry, reason: reason, detail: nil))
        return
      }
      do throws(ItemSealError) {
        let blob = try keys.seal(item, as: .backup, random: random)
        let reference = try? PersistentReference.uuid(item.kind, reference).serialized()
        switch form {
        case .sealed:
          entries.append(.init(kind: item.kind, blob: blob.serialized(), persistentReference: reference))
        case .opened, .openedAlone:
          let opened = ArchivedItem(
            index: items.count, kind: item.kind, protection: item.protection, persistentReference: reference,
            keyClass: blob.keyClass, classKey: nil, opening: opening(of: blob, item.kind, with: keys))
          items.append(opened)
          if form == .opened { report.exported.append(opened.item.map(entry.sharing) ?? entry) }
          return
        }
        report.exported.append(entry)
      } catch {
        report.leftOut.append(.init(item: entry, reason: .malformed, detail: error.reason))
      }
    }
  }
}

extension BackupExporter.Export {
  private mutating func opening(
    of blob: ItemBlob, _ kind: ItemKind, with keys: borrowing ClassKeys
  ) -> ArchivedItem.Opening {
    do throws(ItemSealError) {
      return .opened(known.shared(try keys.open(blob, kind: kind)))
    } catch {
      do throws(ArchivedKeychainError) {
        return .failed(try ArchivedItem.Failure(error, keyClass: blob.keyClass))
      } catch let failure {
        fault = failure
        return .failed(.tagMismatch)
      }
    }
  }
}

extension Reason {
  init(_ fault: RowFault) {
    switch fault {
    case .undecodable: self = .malformed
    // Only rows of the passcode class get this far; the others end the export.
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
    case .keyUnavailable(let keyClass): "the device has no usable key of class \(keyClass.words)"
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
