import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Why an archived item does not open")
struct ReasonTests {
  private func item(
    _ failure: ArchivedItem.Failure?, _ protection: ProtectionClass? = .whenUnlocked,
    through classKey: ClassKeyAvailability? = .available
  ) -> ArchivedItem {
    ArchivedItem(
      index: 0, kind: .genericPassword, protection: protection, classKey: classKey,
      opening: failure.map { .failed($0) } ?? .opened(.password("anna")))
  }

  private func reason(
    _ item: ArchivedItem, among others: [ArchivedItem] = [], backupHasPassword: Bool = true
  ) -> Reason? {
    item.reason(hardware: HardwareProof(others + [item]), backupHasPassword: backupHasPassword)
  }

  @Test("another copy may hold what is damaged, and not what no restore takes")
  func otherCopies() {
    #expect(Reason.allCases.filter(\.isLostInThisCopy) == [.noClassKey, .tagMismatch, .malformed])
  }

  @Test("a secret that nothing names is for no device, whatever its class")
  func secretOnly() {
    func archived(_ protection: ProtectionClass?, isSecretOnly: Bool) -> ArchivedItem {
      ArchivedItem(
        index: 0, kind: .genericPassword, protection: protection, classKey: .available,
        opening: .opened(.password("anna")), isSecretOnly: isSecretOnly)
    }
    let contents = ArchiveContents([
      archived(.whenUnlocked, isSecretOnly: false), archived(.whenUnlockedThisDeviceOnly, isSecretOnly: false),
      archived(.whenUnlocked, isSecretOnly: true), archived(nil, isSecretOnly: true),
    ])
    #expect(contents.migratable == 1 && contents.thisDeviceOnly == 1 && contents.secretOnly == 2)
    #expect(contents.total == 4 && contents.countByProtection[.whenUnlocked] == 2)
  }

  @Test("is nothing where it opens")
  func open() { #expect(reason(item(nil)) == nil) }

  @Test("is damage of the item or of its class's key")
  func damage() {
    let failures: [(ArchivedItem.Failure, Reason)] = [
      (.noClassKey(.whenUnlocked), .noClassKey), (.classKeyDamaged(.whenUnlocked), .noClassKey),
      (.keyUnwrapFailed, .tagMismatch), (.tagMismatch, .tagMismatch), (.malformed("x"), .malformed),
      (.missingData, .malformed), (.unsupportedVersion(7), .unsupportedVersion),
    ]
    for (failure, expected) in failures {
      #expect(reason(item(failure)) == expected && expected.isDamage)
      #expect(!item(failure).mayNeedOtherHardware(HardwareProof()))
    }
  }

  @Test("is the device's hardware for this-device-only items, and for all where the backup has no password")
  func hardware() {
    #expect(reason(item(.hardwareMissing, .whenUnlockedThisDeviceOnly)) == .deviceBound)
    #expect(reason(item(.hardwareMissing), backupHasPassword: false) == .backupNotEncrypted)
    #expect(
      reason(item(.hardwareMissing, .whenUnlockedThisDeviceOnly), backupHasPassword: false) == .deviceBound)
    // A keybag that was changed: no item may be called migratable by it.
    #expect(reason(item(.hardwareMissing)) == .deviceBound)
  }

  @Test("is other hardware until an item of its class has proved this one; then it is damage")
  func proof() {
    let closed = item(.keyUnwrapFailed, .whenUnlockedThisDeviceOnly, through: .availableThroughDevice)
    #expect(reason(closed) == .deviceBound)
    let opened = item(nil, .whenUnlockedThisDeviceOnly, through: .availableThroughDevice)
    #expect(reason(closed, among: [opened]) == .tagMismatch)
    let other = item(nil, .alwaysThisDeviceOnly, through: .availableThroughDevice)
    #expect(reason(closed, among: [other]) == .deviceBound)
  }
}
