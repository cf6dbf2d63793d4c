package import Backups
import Basics
import KeychainCrypto
public import KeychainFormats
public import KeychainRules
package import VirtualDevice

/// The current items of the device that made a backup, compared with the backup.
///
/// A backup does not show which items were excluded when it was made. If the source device is available, this value
/// shows which of them the device still has.
public struct SourceDeviceItems: Sendable {
  /// An item of the device that is not in the backup.
  public struct Item: Sendable, Hashable {
    /// The item's names.
    package let identity: ItemDescriptor
    /// The protection class; `nil` if it is unknown.
    public let protection: ProtectionClass?
    /// The rule or the damage that excludes the item from every backup; `nil` if a new backup would contain it.
    public let reason: Reason?

    /// Creates an item that is not in the backup.
    package init(identity: ItemDescriptor, protection: ProtectionClass?, reason: Reason?) {
      self.identity = identity
      self.protection = protection
      self.reason = reason
    }
  }

  /// The name of the device.
  public let device: String
  /// The current revision of the device, such as `r17`. The revision of the backup is unknown.
  package let revision: String
  /// Whether the backup's items prove that the device made it. If no item needs the device key, only the device's
  /// identifier shows this.
  package let isProven: Bool
  /// The items of the device that are not in the backup.
  public let absent: [Item]
  /// The number of items that are on the device and in the backup, including items that differ or that are encrypted in
  /// the backup.
  package let includedCount: Int
  /// The number of items in the backup that the device has changed since the backup.
  package let changedCount: Int
  /// The number of items that may be among the backup's encrypted items.
  package let possiblyIncludedCount: Int
  /// The number of items in the backup that the device no longer has.
  package let removedCount: Int

  /// Creates the result of a comparison.
  package init(
    device: String, revision: String, isProven: Bool, absent: [Item], includedCount: Int, changedCount: Int = 0,
    possiblyIncludedCount: Int = 0, removedCount: Int = 0
  ) {
    self.device = device
    self.revision = revision
    self.isProven = isProven
    self.absent = absent
    self.includedCount = includedCount
    self.changedCount = changedCount
    self.possiblyIncludedCount = possiblyIncludedCount
    self.removedCount = removedCount
  }

  /// Compares the device with the backup.
  ///
  /// - Parameters:
  ///   - backup: The backup, decrypted with this device's key.
  ///   - device: A session of the unlocked device.
  /// - Throws: The errors of a backup of the device, mainly of category `locked`.
  package init(of backup: UnlockedBackup, on device: DeviceSession) throws(KeyhaulError) {
    let simulatedBackup = try SimulatedBackup(itemsOf: device, sharingMemoryWith: backup.items)
    let deviceKey = try device.deviceKey()
    let decryptedItems = try simulatedBackup.items(openedWith: deviceKey).filter { $0.item != nil }
    let deviceEntries = decryptedItems.map(KeychainEntry.init(decrypted:))
    let backupEntries = Self.asRestored(backup.entries, comparedWith: deviceEntries)
    let difference = try KeychainDifference(from: backupEntries, to: deviceEntries)
    let excludedItems = simulatedBackup.omissions.map { decision in
      Item(identity: decision.identity, protection: decision.protection, reason: decision.outcome.reason)
    }
    let addedItems = difference.added.map { entry in
      Item(identity: entry.identity, protection: entry.protection, reason: nil)
    }
    self.init(
      device: device.name, revision: device.record.revision, isProven: backup.isSameDevice == true,
      absent: excludedItems + addedItems,
      includedCount: difference.sameCount + difference.changed.count + difference.undecrypted.inBoth,
      changedCount: difference.changed.count, possiblyIncludedCount: difference.possiblyInFirst.count,
      removedCount: difference.removed.count)
  }

  /// Returns the backup's entries in the form that a restore stores, if the device has them in that form.
  ///
  /// A restore marks some items as synchronized that the backup does not mark (`SyncInference`).
  private static func asRestored(
    _ entries: [KeychainEntry], comparedWith deviceEntries: [KeychainEntry]
  ) -> [KeychainEntry] {
    func primaryKey(of item: KeychainItem) -> PrimaryKey? { try? PrimaryKey(of: item) }
    func mayStartToSync(_ entry: KeychainEntry) -> Bool {
      entry.item.map { !$0.isSynchronizable && SyncInference.appliesTo($0) } ?? false
    }
    guard entries.contains(where: mayStartToSync) else { return entries }
    let keysOnDevice = Set(
      deviceEntries.lazy.filter { $0.kind == .internetPassword }.compactMap { $0.item.flatMap(primaryKey) })
    return entries.map { entry in
      guard mayStartToSync(entry), let item = entry.item, let keyInBackup = primaryKey(of: item),
        !keysOnDevice.contains(keyInBackup)
      else { return entry }
      var restored = item
      restored.unpack()
      restored[.synchronizable] = .integer(1)
      guard let restoredKey = primaryKey(of: restored), keysOnDevice.contains(restoredKey) else { return entry }
      return KeychainEntry(
        index: entry.index, item: restored, persistentReference: entry.persistentReference,
        protection: entry.protection)
    }
  }

  /// The number of items of the device, without tombstones.
  package var total: Int { includedCount + possiblyIncludedCount + absent.count }
  /// Items that a rule excludes from every backup.
  package var neverIncluded: [Item] { absent.filter { $0.reason?.isDamage == false } }
  /// Items that no backup contains because their rows cannot be read.
  package var unreadable: [Item] { absent.filter { $0.reason?.isDamage == true } }
  /// Items that a new backup would contain, but this backup does not.
  package var addedSince: [Item] { absent.filter { $0.reason == nil } }
  /// Whether the device has visibly changed since the backup. Items that were excluded from the backup and deleted later
  /// are unknown.
  package var hasChanged: Bool { changedCount > 0 || removedCount > 0 || !addedSince.isEmpty }

  /// The result with items that are named by position, such as `own-0001`.
  package var redacted: SourceDeviceItems {
    SourceDeviceItems(
      device: "the source device", revision: revision, isProven: isProven,
      absent: absent.enumerated().map { position, item in
        Item(
          identity: ItemDescriptor(redacted: item.identity, "own-", position + 1), protection: item.protection,
          reason: item.reason)
      },
      includedCount: includedCount, changedCount: changedCount, possiblyIncludedCount: possiblyIncludedCount,
      removedCount: removedCount)
  }
}

extension BackupArchive {
  /// Opens the virtual device with the identifier of the backup's source device. The caller invalidates the session.
  ///
  /// Anyone can write that identifier into a backup, so only the items prove that the device made it
  /// (`DeviceKeyEvidence`). Devices in use by another process are skipped.
  ///
  /// - Parameters:
  ///   - deviceSet: The available devices.
  ///   - target: A device that is already open and is not opened again.
  ///   - command: The name of the command, for other processes that find the device in use.
  ///   - onSkip: Called with each device that has the identifier but whose key cannot be read, and with the error.
  /// - Returns: The session; `nil` if there is no such device or it cannot be read.
  /// - Throws: The error of a device if the system has no descriptor or memory left.
  package func sourceDevice(
    in deviceSet: DeviceSet, excluding target: DeviceSession?, command: String,
    onSkip: (VirtualDevice, KeyhaulError) -> Void = { _, _ in }
  ) throws(KeyhaulError) -> DeviceSession? {
    guard let identifier = device.identifier?.lowercased(), identifier != target?.record.udid.lowercased(),
      let devices = try Self.valueIfReadable({ () throws(KeyhaulError) in try deviceSet.devices() })
    else { return nil }
    for device in devices {
      // Only a device with the right identifier is opened, which takes its file lock.
      let record = try Self.valueIfReadable { () throws(KeyhaulError) in try device.storedRecord() }
      guard record?.udid.lowercased() == identifier else { continue }
      do throws(KeyhaulError) {
        return try Self.sessionWithKey(of: device, command)
      } catch {
        if error.isResourceShortage { throw error }
        onSkip(device, error)
      }
    }
    return nil
  }

  /// Returns the result of reading from a device; `nil` if the device cannot be read.
  ///
  /// - Throws: The error if the system has no descriptor or memory left, because the device is not at fault.
  private static func valueIfReadable<Value>(
    _ read: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value? {
    do throws(KeyhaulError) {
      return try read()
    } catch {
      if error.isResourceShortage { throw error }
      return nil
    }
  }

  private static func sessionWithKey(
    of device: VirtualDevice, _ command: String
  ) throws(KeyhaulError) -> DeviceSession {
    let openDevice = try device.openSession(.reading, verb: command)
    do throws(KeyhaulError) {
      _ = try openDevice.deviceKey()
      return openDevice
    } catch {
      openDevice.invalidate()
      throw error
    }
  }
}
