package import Backups
import Basics
import KeychainCrypto
public import KeychainFormats
public import KeychainRules
package import VirtualDevice

/// The items of the device that made a backup, as they are today, held against the backup: how many of them are in it, and
/// which are not.
///
/// A backup does not show what was left out when it was made. Where its device is available, this does, as far as the device
/// still has it.
public struct SourceDeviceItems: Sendable {
  /// An item of the device that is not in the backup.
  public struct Item: Sendable, Hashable {
    /// The names that it is known by.
    package let identity: ItemDescriptor
    /// The class that protects it; `nil` if nothing says it.
    public let protection: ProtectionClass?
    /// The rule, or the damage of its row, that keeps it out of every backup; `nil` if a backup made now would hold
    /// it.
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
  /// The revision that the device has now, such as `r17`. Which one the backup was made at is not recorded.
  package let revision: String
  /// Whether the backup's items prove that the device made it; where none of them needs the hardware, the device's
  /// identifier alone says it.
  package let isProven: Bool
  /// The items of the device that are not in the backup.
  public let absent: [Item]
  /// Items of the device that are in the backup, those whose content differs or is sealed in the backup included.
  package let includedCount: Int
  /// Of those in the backup, the ones that the device has changed since.
  package let changedCount: Int
  /// Items of the device that may be among those of the backup that do not open: nothing tells.
  package let possiblyIncludedCount: Int
  /// Items of the backup that are on the device no more.
  package let removedCount: Int

  /// Creates what is known of the device's items.
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
  ///   - archive: The backup, opened with the hardware key of this device.
  ///   - device: A hold on the device, which has to be unlocked.
  /// - Throws: As a backup of the device does, category `locked` foremost.
  package init(of archive: UnlockedBackup, on device: DeviceSession) throws(KeyhaulError) {
    let simulatedBackup = try SimulatedBackup(itemsOf: device, sharingMemoryWith: archive.items)
    let deviceKey = try device.deviceKey()
    let today = try simulatedBackup.items(openedWith: deviceKey).filter { $0.item != nil }.map(
      KeychainEntry.init(opened:))
    let difference = try KeychainDifference(from: Self.asRestored(archive.entries, comparedWith: today), to: today)
    self.init(
      device: device.name, revision: device.record.revision, isProven: archive.isSameDevice == true,
      absent: simulatedBackup.leftOut.map {
        Item(identity: $0.identity, protection: $0.protection, reason: $0.outcome.reason)
      } + difference.added.map { Item(identity: $0.identity, protection: $0.protection, reason: nil) },
      includedCount: difference.sameCount + difference.changed.count + difference.sealed.inBoth,
      changedCount: difference.changed.count, possiblyIncludedCount: difference.possiblyInFirst.count,
      removedCount: difference.removed.count)
  }

  /// Items of the backup as a restore leaves them on the device, where that is how it has them: synchronized, though the
  /// backup does not say so.
  private static func asRestored(_ items: [KeychainEntry], comparedWith today: [KeychainEntry]) -> [KeychainEntry] {
    func key(_ item: KeychainItem) -> PrimaryKey? { try? PrimaryKey(of: item) }
    let isInferred = items.map { compared in
      compared.item.map { !$0.isSynchronizable && SyncInference.appliesTo($0) } ?? false
    }
    guard isInferred.contains(true) else { return items }
    let there = Set(today.lazy.filter { $0.kind == .internetPassword }.compactMap { $0.item.flatMap(key) })
    return zip(items, isInferred).map { compared, isInferred in
      guard isInferred, let item = compared.item, let own = key(item), !there.contains(own) else { return compared }
      var restored = item
      restored.unpack()
      restored[.synchronizable] = .integer(1)
      guard let synchronized = key(restored), there.contains(synchronized) else { return compared }
      return KeychainEntry(
        index: compared.index, item: restored, persistentReference: compared.persistentReference,
        protection: compared.protection)
    }
  }

  /// Items of the device, tombstones apart.
  package var total: Int { includedCount + possiblyIncludedCount + absent.count }
  /// Items that no backup of the device holds, by a rule.
  package var never: [Item] { absent.filter { $0.reason?.isDamage == false } }
  /// Items whose rows on the device cannot be read, so that no backup holds them.
  package var unreadable: [Item] { absent.filter { $0.reason?.isDamage == true } }
  /// Items that a backup made now would hold and this one does not.
  package var since: [Item] { absent.filter { $0.reason == nil } }
  /// Whether the device shows that it has changed since the backup; what was left out then and is gone now shows nowhere.
  package var hasChanged: Bool { changedCount > 0 || removedCount > 0 || !since.isEmpty }

  /// The same to show to others: each item is called `own-0001` by its position among those that are not in the backup.
  package var redacted: SourceDeviceItems {
    SourceDeviceItems(
      device: "the old device", revision: revision, isProven: isProven,
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
  /// Opens the virtual device whose identifier is that of the backup's source device; the caller ends the session.
  ///
  /// Anyone can write that identifier into a backup, so only the items prove that the device made it (`DeviceKeyEvidence`).
  /// A device that another process uses is passed over.
  ///
  /// - Parameters:
  ///   - home: The devices that are available.
  ///   - target: A device that is open already and is not opened again.
  ///   - verb: The name of the command, for other processes that find the device in use.
  ///   - passedOver: Called with each device that has the identifier and whose key cannot be read, and with the reason.
  /// - Returns: The session; `nil` if there is no such device, or if it cannot be read.
  /// - Throws: The error of a device if the system has no descriptor or memory left.
  package func sourceDevice(
    in home: DeviceSet, excluding target: DeviceSession?, verb: String,
    passedOver: (VirtualDevice, KeyhaulError) -> Void = { _, _ in }
  ) throws(KeyhaulError) -> DeviceSession? {
    guard let identifier = device.identifier?.lowercased(), identifier != target?.record.udid.lowercased(),
      let devices = try Self.readable({ () throws(KeyhaulError) in try home.devices() })
    else { return nil }
    for device in devices {
      // Only the one whose record fits is held at all.
      let record = try Self.readable { () throws(KeyhaulError) in try device.storedRecord() }
      guard record?.udid.lowercased() == identifier else { continue }
      do throws(KeyhaulError) {
        return try Self.sessionWithKey(of: device, verb)
      } catch {
        if error.isShortage { throw error }
        passedOver(device, error)
      }
    }
    return nil
  }

  /// Returns the result of reading from a device; `nil` if the device cannot be read.
  ///
  /// - Throws: The error if the system has no descriptor or memory left, because the device is not at fault.
  private static func readable<Value>(
    _ read: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value? {
    do throws(KeyhaulError) {
      return try read()
    } catch {
      if error.isShortage { throw error }
      return nil
    }
  }

  private static func sessionWithKey(
    of device: VirtualDevice, _ verb: String
  ) throws(KeyhaulError) -> DeviceSession {
    let openDevice = try device.openSession(.reading, verb: verb)
    do throws(KeyhaulError) {
      _ = try openDevice.deviceKey()
      return openDevice
    } catch {
      openDevice.invalidate()
      throw error
    }
  }
}
