public import Backups
import Basics
public import KeychainCrypto
import KeychainRules
public import VirtualDevice

/// A backup, opened with its password: what is in it, and what it would bring to a device.
///
/// The password's key is derived once, when the backup is opened, and is wiped when the last copy of this value is gone.
/// Nothing is written but by `make(of:password:path:rounds:)` and `Plan.restore()`.
public struct Backup: Sendable {
  /// The backup with every item tried that the password, and the hardware key where one was given, can open.
  public let opened: OpenedArchive
  private let key: ArchiveKey

  /// Reads a backup and opens it.
  ///
  /// - Parameters:
  ///   - path: A backup's directory, or one file made of it.
  ///   - password: Of the backup; `nil` for one without.
  ///   - maker: The device that made it, where it is available: with its hardware key the items of this device only open as
  ///     well.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work; real backups ask for 10,000,000.
  /// - Throws: Category `notFound`, `wrongPassword`, `damaged`, or `refused` over a limit.
  public init(
    path: String, password: borrowing Secret? = nil, maker: VirtualDevice? = nil,
    acceptingAtMost limit: Int = RoundLimit.standard
  ) throws(MigrationError) {
    let archive = try reporting { () throws(BackupArchiveError) in try BackupArchive.open(.path(path)) }
    do throws(ArchivedKeychainError) {
      key = try ArchiveKey(of: archive, password: password, acceptingAtMost: limit)
    } catch {
      throw MigrationError(error)
    }
    opened = try Self.open(archive, key, with: try Self.hardwareKey(of: maker))
  }

  /// Everything that the backup shows without its password.
  public var archive: BackupArchive { opened.archive }
  /// The items in the order of the backup. One that does not open says why by `reason(of:)`.
  public var items: [ArchivedItem] { opened.items }
  /// Why an item does not open with the available keys; `nil` if it opens.
  public func reason(of item: ArchivedItem) -> Reason? { opened.reason(of: item) }

  private static func hardwareKey(of device: VirtualDevice?) throws(MigrationError) -> DeviceKey? {
    guard let device else { return nil }
    let session = try reporting { () throws(VirtualDeviceError) in try device.openSession(.reading, verb: "open") }
    defer { session.end() }
    return try reporting { () throws(VirtualDeviceError) in try session.deviceKey() }
  }

  /// Decides what restoring the backup onto a device would do. Changes nothing.
  ///
  /// - Parameters:
  ///   - device: The target; it may be locked, and may be the device that made the backup.
  ///   - policy: What happens to the target's own items before anything is imported; iOS replaces.
  /// - Throws: Category `damaged` for a backup that was never finished, and what the device reports.
  public func plan(
    onto device: VirtualDevice, existing policy: ExistingItemPolicy = .replace
  ) throws(MigrationError) -> Plan {
    let archive = try Self.open(archive, key, with: try Self.hardwareKey(of: device))
    let session = try reporting { () throws(VirtualDeviceError) in try device.openSession(.reading, verb: "plan") }
    defer { session.end() }
    return Plan(
      try Restorer.plan(archive, onto: session, policy: policy), onto: device, revision: session.record.revision)
  }

  /// Backs a device up, as it is now, and opens what was written.
  ///
  /// - Parameters:
  ///   - device: The device, unlocked.
  ///   - password: `nil` for a backup without one, whose keychain only this device can restore.
  ///   - path: Where it goes. With a slash at its end, or where a directory stands, it is a directory; else one file,
  ///     whose name tells the format. A backup that stands there is not replaced.
  ///   - rounds: Of the password's derivation; every real device asks for 10,000,000, a test needs 1.
  /// - Throws: Category `locked`; `usage` where something stands there. No partial backup is left.
  public static func make(
    of device: VirtualDevice, password: borrowing Secret? = nil, path: String,
    rounds: Int = BackupKeybag.standardRounds
  ) throws(MigrationError) -> Backup {
    let session = try reporting { () throws(VirtualDeviceError) in try device.openSession(.reading, verb: "back up") }
    defer { session.end() }
    let prepared = try BackupExporter.prepare(session, password: password, rounds: rounds, listsExported: false)
    let written = try prepared.write(to: .init(path: path))
    return try Backup(
      path: written.path ?? path, password: password, maker: device, acceptingAtMost: max(rounds, RoundLimit.standard))
  }

  private static func open(
    _ archive: BackupArchive, _ key: ArchiveKey, with deviceKey: DeviceKey?
  ) throws(MigrationError) -> OpenedArchive {
    do throws(ArchivedKeychainError) {
      return try OpenedArchive(archive, key: key, deviceKey: deviceKey, for: .reading)
    } catch {
      throw MigrationError(error)
    }
  }
}
