public import Backups
import Basics
public import KeychainCrypto
import KeychainFormats
import KeychainRules
public import VirtualDevice

/// A backup, opened with its password: its items, and what they would do on another device.
///
/// The password's key is derived once, when the backup is opened, and is wiped when the last copy of this value is gone.
/// Until then the backup is locked for reading, so that no other process that uses Keyhaul changes it. Only
/// `create(from:password:at:iterations:)`, `convert(to:)`, `rekey(from:to:)`, `seal()` and `Plan.restore()` write anything.
public struct Backup: Sendable {
  /// The backup with every item tried that the password, and the hardware key where one was given, can open.
  public let opened: UnlockedBackup
  private let path: String
  private let key: BackupKey
  private let deviceKey: DeviceKey?

  /// Reads a backup and opens it.
  ///
  /// - Parameters:
  ///   - path: A backup's directory, or one file made of it.
  ///   - password: Of the backup; `nil` for one without.
  ///   - sourceDevice: The device that made it, where it is available: with its hardware key the items of this device only open as
  ///     well.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work; real backups ask for 10,000,000.
  /// - Throws: Category `notFound`, `wrongPassword`, `damaged`, or `refused` over a limit; `busy` if another process is
  ///   changing the backup.
  public init(
    path: String, password: borrowing Secret? = nil, sourceDevice: VirtualDevice? = nil,
    acceptingAtMost limit: Int = IterationLimit.standard
  ) throws(KeyhaulError) {
    try self.init(
      path: path, password: password, deviceKey: try Self.hardwareKey(of: sourceDevice), acceptingAtMost: limit)
  }

  private init(
    path: String, password: borrowing Secret?, deviceKey: DeviceKey?, acceptingAtMost limit: Int
  ) throws(KeyhaulError) {
    let archive = try BackupArchive.open(.path(path))
    key = try archive.unlock(password: password, acceptingAtMost: limit)
    opened = try Self.open(archive, key, with: deviceKey)
    self.deviceKey = deviceKey
    self.path = path
  }

  /// Everything that the backup shows without its password.
  public var archive: BackupArchive { opened.archive }
  /// The items in the order of the backup. One that does not open says why by `reason(of:)`.
  public var items: [BackupItem] { opened.items }
  /// Why an item does not open with the available keys; `nil` if it opens.
  public func reason(of item: BackupItem) -> Reason? { opened.reason(of: item) }

  private static func hardwareKey(of device: VirtualDevice?) throws(KeyhaulError) -> DeviceKey? {
    guard let device else { return nil }
    let session = try device.openSession(.reading, verb: "open")
    defer { session.invalidate() }
    return try session.deviceKey()
  }

  private static func open(
    _ archive: BackupArchive, _ key: BackupKey, with deviceKey: DeviceKey?
  ) throws(KeyhaulError) -> UnlockedBackup {
    try archive.open(with: key, deviceKey: deviceKey, for: .reading)
  }
}

extension Backup {
  /// Forecasts restores of the backup to a new device and to the same device after it was erased, without a target.
  ///
  /// - Throws: Category `damaged` for a backup that was never finished, `refused` for one that anyone can have written.
  public func outlook() throws(KeyhaulError) -> RestoreOutlook {
    guard deviceKey != nil else { return try RestoreOutlook(of: opened, returning: nil) }
    return try RestoreOutlook(of: try Self.open(archive, key, with: nil), returning: opened)
  }

  /// Decides what restoring the backup onto a device would do. Changes nothing.
  ///
  /// - Parameters:
  ///   - device: The target; it may be locked, and may be the device that made the backup.
  ///   - policy: What happens to the target's own items before anything is imported; iOS replaces.
  /// - Throws: Category `damaged` for a backup that was never finished, and what the device reports.
  public func plan(
    onto device: VirtualDevice, existing policy: ExistingItemPolicy = .replace
  ) throws(KeyhaulError) -> Plan {
    let archive = try Self.open(archive, key, with: try Self.hardwareKey(of: device))
    let session = try device.openSession(.reading, verb: "plan")
    defer { session.invalidate() }
    return Plan(
      try Restorer.plan(archive, onto: session, policy: policy), onto: device, revision: session.record.revision)
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
  /// Backs a device up, as it is now, and opens what was written.
  ///
  /// - Parameters:
  ///   - device: The device, unlocked.
  ///   - password: `nil` for a backup without one, whose keychain only this device can restore.
  ///   - path: Where it goes. With a slash at its end, or where a directory stands, it is a directory; else one file,
  ///     whose name tells the format. A backup that stands there is not replaced.
  ///   - iterations: Of the password's derivation; every real device asks for 10,000,000, a test needs 1.
  /// - Throws: Category `locked`; `usage` where something stands there. No partial backup is left.
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
  /// - Throws: Category `usage` if there is something at that path; `failed` if the disk is full. No partial copy is left.
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
  /// - Throws: Category `wrongPassword` for `old`; `busy` if another process uses the backup; `damaged` if the manifest is
  ///   not what its device wrote.
  public func rekey(from old: borrowing Secret, to new: borrowing Secret) throws(KeyhaulError) -> Backup {
    try requireOwnPath()
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
  /// - Throws: Category `usage` if the backup has a seal; `busy` if another process uses the backup.
  @discardableResult
  public func seal() throws(KeyhaulError) -> Int {
    try requireOwnPath()
    let keys = try key.classKeys(deviceKey: nil)
    return try BackupRewriter().seal(archive, at: path, keys: keys)
  }

  /// Refuses a link: the new file would replace the link, not the backup.
  private func requireOwnPath() throws(KeyhaulError) {
    guard (try? FileSystem.real.status(of: path, followsLink: false))?.kind == .link else { return }
    throw KeyhaulError(.unsupported, "\(UntrustedText.escaped(path)) is a symbolic link")
  }
}
