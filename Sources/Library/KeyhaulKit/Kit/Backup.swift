public import Backups
import Basics
public import KeychainCrypto
import KeychainFormats
import KeychainRules
public import VirtualDevice

/// A decrypted backup: its items, and what they would do on another device.
///
/// The password's key is derived once, when the backup is opened, and wiped with the last copy of this value. Until
/// then, a file lock keeps other processes that use Keyhaul from changing the backup. Only
/// `create(from:password:at:iterations:)`, `convert(to:)`, `rekey(from:to:)`, `seal()` and `Plan.restore()` write
/// anything.
public struct Backup: Sendable {
  /// The backup with all items that the password and the device key can decrypt.
  public let opened: UnlockedBackup
  private let path: String
  private let key: BackupKey
  private let deviceKey: DeviceKey?

  /// Opens and decrypts a backup.
  ///
  /// - Parameters:
  ///   - path: The path of a backup's directory, or of a packed backup.
  ///   - password: The backup's password; `nil` if it has none.
  ///   - sourceDevice: The source device, if it is available. Its device key also decrypts this-device-only items.
  ///   - limit: The maximum number of PBKDF2 iterations of both steps together, checked before any work. Real backups
  ///     require 10,010,000.
  /// - Throws: Category `notFound` if there is no backup at the path; `wrongPassword` if the password is wrong or missing;
  ///   `damaged`; `refused` if a limit is exceeded, or if a password is given for a backup without one; `busy` if another
  ///   process is changing the backup; the errors of the source device.
  public init(
    path: String, password: borrowing Secret? = nil, sourceDevice: VirtualDevice? = nil,
    acceptingAtMost limit: Int = IterationLimit.standard
  ) throws(KeyhaulError) {
    try self.init(
      path: path, password: password, deviceKey: try Self.deviceKey(of: sourceDevice), acceptingAtMost: limit)
  }

  private init(
    path: String, password: borrowing Secret?, deviceKey: DeviceKey?, acceptingAtMost limit: Int
  ) throws(KeyhaulError) {
    let archive = try BackupArchive.open(.path(path))
    key = try archive.unlock(password: password, acceptingAtMost: limit)
    opened = try Self.decrypted(archive, key, with: deviceKey)
    self.deviceKey = deviceKey
    self.path = path
  }

  /// All information that needs no password.
  public var archive: BackupArchive { opened.archive }
  /// The items in the order of the backup. For an item that cannot be decrypted, `reason(of:)` returns the reason.
  public var items: [BackupItem] { opened.items }
  /// Returns the reason why an item cannot be decrypted with the available keys; `nil` if it can.
  public func reason(of item: BackupItem) -> Reason? { opened.reason(of: item) }

  private static func deviceKey(of device: VirtualDevice?) throws(KeyhaulError) -> DeviceKey? {
    guard let device else { return nil }
    let session = try device.openSession(.reading, verb: "open")
    defer { session.invalidate() }
    return try session.deviceKey()
  }

  private static func decrypted(
    _ archive: BackupArchive, _ key: BackupKey, with deviceKey: DeviceKey?
  ) throws(KeyhaulError) -> UnlockedBackup {
    try archive.open(with: key, deviceKey: deviceKey, for: .reading)
  }
}

extension Backup {
  /// Predicts restores of the backup to a new device and to the same device after it was erased, without a target.
  ///
  /// - Throws: Category `damaged` if the backup was never finished; `refused` if anyone could have written the backup.
  public func outlook() throws(KeyhaulError) -> RestoreOutlook {
    guard deviceKey != nil else { return try RestoreOutlook(of: opened, unlockedWithDeviceKey: nil) }
    return try RestoreOutlook(of: try Self.decrypted(archive, key, with: nil), unlockedWithDeviceKey: opened)
  }

  /// Plans the restore of the backup to a device. Nothing is changed.
  ///
  /// - Parameters:
  ///   - device: The target. It may be locked, and may be the source device.
  ///   - policy: The treatment of the target's own items before the import. iOS replaces them.
  /// - Returns: The plan, which is valid until the device changes.
  /// - Throws: Category `damaged` if the backup was never finished; the errors of the device, such as `busy`.
  public func plan(
    onto device: VirtualDevice, existing policy: ExistingItemPolicy = .replace
  ) throws(KeyhaulError) -> Plan {
    let openedForTarget = try Self.decrypted(archive, key, with: try Self.deviceKey(of: device))
    let session = try device.openSession(.reading, verb: "plan")
    defer { session.invalidate() }
    return Plan(
      try Restorer.plan(openedForTarget, onto: session, policy: policy), onto: device,
      revision: session.record.revision)
  }

  /// Checks every file, class key and item of the backup. Each fault is a finding, not an error.
  ///
  /// - Throws: Category `failed` if the files cannot be listed.
  public func verify() throws(KeyhaulError) -> BackupVerification {
    let keys: ClassKeys? = key.keybagFault == nil ? try key.classKeys(deviceKey: deviceKey) : nil
    return try BackupVerification(archive, keys: keys, keybagFault: key.keybagFault)
  }
}

extension Backup {
  /// Backs up a device and opens the backup.
  ///
  /// - Parameters:
  ///   - device: The device, unlocked.
  ///   - password: The password; `nil` if the backup gets none. Only this device can then restore its keychain.
  ///   - path: The path of the backup. A final slash or an existing directory means a directory; otherwise the backup
  ///     is packed into one file, in the format of the file's name. An existing backup is not replaced.
  ///   - iterations: The iterations of the first derivation step. The second step always has 10,000. Real devices use
  ///     10,000,000 for the first step; 1 is enough for a test. Not used without a password.
  /// - Returns: The backup, opened.
  /// - Throws: Category `locked` if an item cannot be read; `usage` if the path exists; `refused` for an empty password
  ///   or too many iterations; the errors of the device, such as `busy`; `failed` if a file operation fails. No partial
  ///   backup is left.
  public static func create(
    from device: VirtualDevice, password: borrowing Secret? = nil, at path: String,
    iterations: Int = BackupKeybag.standardRounds
  ) throws(KeyhaulError) -> Backup {
    let session = try device.openSession(.reading, verb: "back up")
    defer { session.invalidate() }
    let prepared = try BackupExporter.prepare(session, password: password, rounds: iterations, listsExported: false)
    let written = try prepared.write(to: .init(path: path))
    return try Backup(
      path: written.path ?? path, password: password, sourceDevice: device,
      acceptingAtMost: max(iterations, IterationLimit.standard))
  }

  /// Copies the backup to a folder or a file, byte by byte.
  ///
  /// - Parameter path: The path of the copy, as for `create(from:password:at:iterations:)`.
  /// - Returns: The path and the size of the copy.
  /// - Throws: Category `usage` if the path exists; `failed` if the disk is full. No partial copy is left.
  @discardableResult
  public func convert(to path: String) throws(KeyhaulError) -> RewrittenBackup {
    try BackupRewriter().convert(archive, at: self.path, to: .init(path: path))
  }

  /// Changes the backup's password in place. Only the keys are wrapped again; no other file changes.
  ///
  /// - Parameters:
  ///   - old: The password of the backup.
  ///   - new: The new password.
  /// - Returns: The backup, opened with the new password; this value no longer represents what is on the disk.
  /// - Throws: Category `wrongPassword` for `old`; `busy` if another process uses the backup; `damaged` if the manifest
  ///   does not have the form in which devices write it; `refused` if the path is a symbolic link, if `new` is empty, or
  ///   for a backup whose password cannot be changed, such as one of iOS 10.0; `failed` if the backup has changed since it
  ///   was opened, or if a file operation fails.
  public func rekey(from old: borrowing Secret, to new: borrowing Secret) throws(KeyhaulError) -> Backup {
    try rejectSymbolicLink()
    let limit = max(IterationLimit.standard, Int(archive.keybag.iterations ?? 0))
    let keybag: Keybag
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.rewrap(archive.keybag, from: old, to: new, acceptingAtMost: limit)
    } catch {
      throw KeyhaulError(error)
    }
    let keys = try key.classKeys(deviceKey: nil)
    if let finding = opened.fileList.findings.first(where: { $0.blocks(.rewriting) }) { throw finding.refusal }
    try BackupRewriter().replaceKeybag(of: archive, at: path, with: keybag, keys: keys)
    return try Backup(path: path, password: new.copy(), deviceKey: deviceKey, acceptingAtMost: limit)
  }

  /// Adds a seal to the backup: a list of its files that shows every later change.
  ///
  /// - Returns: The number of files that the seal covers.
  /// - Throws: Category `usage` if the backup has a seal; `busy` if another process uses the backup; `refused` if the path
  ///   is a symbolic link; `failed` if the backup has changed since it was opened, or if a file operation fails.
  @discardableResult
  public func seal() throws(KeyhaulError) -> Int {
    try rejectSymbolicLink()
    let keys = try key.classKeys(deviceKey: nil)
    return try BackupRewriter().seal(archive, at: path, keys: keys)
  }

  /// Checks that the path is not a link, because the new file would replace the link and not the backup.
  private func rejectSymbolicLink() throws(KeyhaulError) {
    guard (try? FileSystem.real.status(of: path, followsLink: false))?.kind == .link else { return }
    throw KeyhaulError(.unsupported, "\(UntrustedText.escaped(path)) is a symbolic link")
  }
}
