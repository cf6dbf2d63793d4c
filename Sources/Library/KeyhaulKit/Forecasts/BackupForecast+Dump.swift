import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
public import Keychains
public import VirtualDevice

extension BackupForecast {
  /// What a backup of the device that a dump is of would hold, as far as the dump tells its items.
  ///
  /// The device is not known: a hardware key that is nobody's stands in its place, and that it does not synchronize is
  /// assumed. What a backup leaves out is found by the same rules; a mark that the dump does not have is taken for absent.
  /// - Parameters:
  ///   - dump: The items.
  ///   - name: What reports call it.
  ///   - hasPassword: Whether the backup would be made with a password.
  /// - Throws: What the cryptographic library reports.
  public init(of dump: KeychainDump, named name: String, hasPassword: Bool) throws(MigrationError) {
    let someKey = try MigrationComparison.keyOfSomeDevice()
    try self.init(of: name, hasPassword: hasPassword, deviceKey: someKey, keepsPlaces: true) { (keys, random) in
      var export = BackupExporter.Export(random: random, deviceSyncs: false, keeping: .opened)
      for item in dump.items { export.take(item, sealing: keys) }
      return export
    }
  }
}

extension BackupExporter.Export {
  mutating func take(_ dumped: DumpedItem, sealing keys: borrowing ClassKeys) {
    guard let item = dumped.item else {
      let entry = ExportReport.Item(
        identity: ItemIdentity(sealed: dumped.kind), protection: dumped.protection, rowID: Int64(dumped.index),
        isSynchronizable: nil, holdsEnclaveKey: nil)
      report.leftOut.append(
        .init(item: entry, reason: dumped.fault?.reason ?? .malformed, detail: dumped.fault?.detail))
      return
    }
    let entry = ExportReport.Item(
      identity: ItemIdentity(item), protection: item.protection, rowID: Int64(dumped.index),
      isSynchronizable: item.isSynchronizable, holdsEnclaveKey: item.holdsEnclaveKey)
    guard item.protection != nil else {
      report.leftOut.append(
        .init(item: entry, reason: .malformed, detail: "it names no known protection class"))
      return
    }
    let candidate = ExportCandidate(
      item: item, isAccessControlled: item[.accessControl] != nil,
      isAppClip: item[.appClip]?.integerValue.map { $0 != 0 } ?? false)
    let reference = item[.persistentReference]?.dataValue ?? []
    take(candidate, entry, reference: reference, sealing: keys)
  }
}

extension Restorer {
  /// Decides what restoring a backup of the device that a dump is of would do to a device. Changes nothing.
  ///
  /// The positions are those of the dump. Whether the target is the device that the dump is of is not known; the plan
  /// takes it for another one, and does not say that it is.
  ///
  /// - Throws: What the target's keychain reports.
  public static func plan(
    _ dump: KeychainDump, named name: String, hasPassword: Bool, onto target: DeviceSession, policy: ExistingItemPolicy
  ) throws(MigrationError) -> MigrationPlan {
    let forecast = try BackupForecast(of: dump, named: name, hasPassword: hasPassword)
    return try plan(forecast, onto: target, policy: policy).withoutProof
  }
}
