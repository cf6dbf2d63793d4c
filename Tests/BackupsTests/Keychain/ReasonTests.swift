import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Reasons why items cannot be decrypted")
struct ReasonTests {
  /// Creates an item with a failure, or a decrypted item if there is none.
  private func item(
    failure: BackupItem.Failure?, protection: ProtectionClass? = .whenUnlocked,
    classKey: ClassKeyAvailability? = .available
  ) -> BackupItem {
    BackupItem(
      index: 0, kind: .genericPassword, protection: protection, classKey: classKey,
      opening: failure.map { .failed($0) } ?? .opened(.password("anna")))
  }

  /// Returns the reason why an item cannot be decrypted. If the device key decrypted one of the other items, it is the
  /// right key for the class of that item.
  private func reason(
    of item: BackupItem, among otherItems: [BackupItem] = [], backupHasPassword: Bool = true
  ) -> Reason? {
    item.reason(hardware: DeviceKeyEvidence(otherItems + [item]), backupHasPassword: backupHasPassword)
  }

  @Test(
    "An item may be intact in another copy of the backup only if its class key is missing or its bytes are damaged")
  func lostInThisCopy() {
    #expect(Reason.allCases.filter(\.isLostInThisCopy) == [.noClassKey, .tagMismatch, .malformed])
  }

  @Test("Items with a secret but no name are counted as secret-only, not as migratable or device-only")
  func secretOnly() {
    func decryptedItem(_ protection: ProtectionClass?, isSecretOnly: Bool) -> BackupItem {
      BackupItem(
        index: 0, kind: .genericPassword, protection: protection, classKey: .available,
        opening: .opened(.password("anna")), isSecretOnly: isSecretOnly)
    }
    let counts = BackupItemCounts([
      decryptedItem(.whenUnlocked, isSecretOnly: false),
      decryptedItem(.whenUnlockedThisDeviceOnly, isSecretOnly: false),
      decryptedItem(.whenUnlocked, isSecretOnly: true), decryptedItem(nil, isSecretOnly: true),
    ])
    #expect(counts.migratable == 1 && counts.thisDeviceOnly == 1 && counts.secretOnly == 2)
    #expect(counts.total == 4 && counts.countByProtection[.whenUnlocked] == 2)
  }

  @Test("A decrypted item has no failure reason")
  func decrypted() { #expect(reason(of: item(failure: nil)) == nil) }

  @Test("If a failed item needs no device key, the reason is a kind of damage")
  func damage() {
    let failures: [(BackupItem.Failure, Reason)] = [
      (.noClassKey(.whenUnlocked), .noClassKey), (.classKeyDamaged(.whenUnlocked), .noClassKey),
      (.keyUnwrapFailed, .tagMismatch), (.tagMismatch, .tagMismatch), (.malformed("x"), .malformed),
      (.missingData, .malformed), (.unsupportedVersion(7), .unsupportedVersion),
    ]
    for (failure, expected) in failures {
      #expect(reason(of: item(failure: failure)) == expected && expected.isDamage)
      #expect(!item(failure: failure).mayNeedOtherDeviceKey(DeviceKeyEvidence()))
    }
  }

  @Test("Without the device key, an item is device-bound, or the backup is not encrypted")
  func deviceKeyMissing() {
    let deviceOnly = item(failure: .hardwareMissing, protection: .whenUnlockedThisDeviceOnly)
    let migratable = item(failure: .hardwareMissing, protection: .whenUnlocked)
    #expect(reason(of: deviceOnly) == .deviceBound)
    #expect(reason(of: deviceOnly, backupHasPassword: false) == .deviceBound)
    #expect(reason(of: migratable, backupHasPassword: false) == .backupNotEncrypted)
    // No device writes this: in a backup with a password, migratable items need no device key.
    #expect(reason(of: migratable) == .deviceBound)
  }

  @Test("A failed item is damaged if the device key decrypted another item of its class, otherwise device-bound")
  func evidence() {
    func item(_ failure: BackupItem.Failure?, _ protection: ProtectionClass) -> BackupItem {
      self.item(failure: failure, protection: protection, classKey: .availableThroughDevice)
    }
    let failed = item(.keyUnwrapFailed, .whenUnlockedThisDeviceOnly)
    #expect(reason(of: failed) == .deviceBound)
    let sameClass = item(nil, .whenUnlockedThisDeviceOnly)
    #expect(reason(of: failed, among: [sameClass]) == .tagMismatch)
    let otherClass = item(nil, .alwaysThisDeviceOnly)
    #expect(reason(of: failed, among: [otherClass]) == .deviceBound)
  }
}
