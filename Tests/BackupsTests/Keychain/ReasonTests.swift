import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Reasons of failed items")
struct ReasonTests {
  private func item(
    _ failure: BackupItem.Failure?, _ protection: ProtectionClass? = .whenUnlocked,
    through classKey: ClassKeyAvailability? = .available
  ) -> BackupItem {
    BackupItem(
      index: 0, kind: .genericPassword, protection: protection, classKey: classKey,
      opening: failure.map { .failed($0) } ?? .opened(.password("anna")))
  }

  private func reason(
    _ item: BackupItem, among others: [BackupItem] = [], backupHasPassword: Bool = true
  ) -> Reason? {
    item.reason(hardware: DeviceKeyEvidence(others + [item]), backupHasPassword: backupHasPassword)
  }

  @Test("Only damaged items may be intact in another copy; items that no restore accepts are not")
  func otherCopies() {
    #expect(Reason.allCases.filter(\.isLostInThisCopy) == [.noClassKey, .tagMismatch, .malformed])
  }

  @Test("A secret without a name cannot be restored to any device, whatever its class")
  func secretOnly() {
    func item(_ protection: ProtectionClass?, isSecretOnly: Bool) -> BackupItem {
      BackupItem(
        index: 0, kind: .genericPassword, protection: protection, classKey: .available,
        opening: .opened(.password("anna")), isSecretOnly: isSecretOnly)
    }
    let contents = BackupItemCounts([
      item(.whenUnlocked, isSecretOnly: false), item(.whenUnlockedThisDeviceOnly, isSecretOnly: false),
      item(.whenUnlocked, isSecretOnly: true), item(nil, isSecretOnly: true),
    ])
    #expect(contents.migratable == 1 && contents.thisDeviceOnly == 1 && contents.secretOnly == 2)
    #expect(contents.total == 4 && contents.countByProtection[.whenUnlocked] == 2)
  }

  @Test("A decrypted item has no reason")
  func decrypted() { #expect(reason(item(nil)) == nil) }

  @Test("An item with a wrong tag or a damaged class key is damaged")
  func damage() {
    let failures: [(BackupItem.Failure, Reason)] = [
      (.noClassKey(.whenUnlocked), .noClassKey), (.classKeyDamaged(.whenUnlocked), .noClassKey),
      (.keyUnwrapFailed, .tagMismatch), (.tagMismatch, .tagMismatch), (.malformed("x"), .malformed),
      (.missingData, .malformed), (.unsupportedVersion(7), .unsupportedVersion),
    ]
    for (failure, expected) in failures {
      #expect(reason(item(failure)) == expected && expected.isDamage)
      #expect(!item(failure).mayNeedOtherHardware(DeviceKeyEvidence()))
    }
  }

  @Test("Device-bound items, and all items of a backup without a password, need the device key")
  func hardware() {
    #expect(reason(item(.hardwareMissing, .whenUnlockedThisDeviceOnly)) == .deviceBound)
    #expect(reason(item(.hardwareMissing), backupHasPassword: false) == .backupNotEncrypted)
    #expect(
      reason(item(.hardwareMissing, .whenUnlockedThisDeviceOnly), backupHasPassword: false) == .deviceBound)
    // In a backup with a password, a migratable class needs the device key only if the keybag was changed.
    #expect(reason(item(.hardwareMissing)) == .deviceBound)
  }

  @Test("A failed item is device-bound, unless the device key decrypted another item of its class; then it is damaged")
  func evidence() {
    let failed = item(.keyUnwrapFailed, .whenUnlockedThisDeviceOnly, through: .availableThroughDevice)
    #expect(reason(failed) == .deviceBound)
    let decrypted = item(nil, .whenUnlockedThisDeviceOnly, through: .availableThroughDevice)
    #expect(reason(failed, among: [decrypted]) == .tagMismatch)
    let otherClass = item(nil, .alwaysThisDeviceOnly, through: .availableThroughDevice)
    #expect(reason(failed, among: [otherClass]) == .deviceBound)
  }
}
