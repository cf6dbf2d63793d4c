import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Evidence about device keys")
struct DeviceKeyEvidenceTests {
  private static let whenUnlocked = ProtectionClass.whenUnlockedThisDeviceOnly
  private static let afterFirstUnlock = ProtectionClass.afterFirstUnlockThisDeviceOnly

  /// Creates an item whose decryption failed or, with `nil`, succeeded.
  private func item(
    _ failure: BackupItem.Failure?, _ protection: ProtectionClass?, keyClass: KeyClass? = nil,
    through classKey: ClassKeyAvailability? = .availableThroughDevice
  ) -> BackupItem {
    BackupItem(
      index: 0, kind: .genericPassword, protection: protection, keyClass: keyClass, classKey: classKey,
      opening: failure.map { .failed($0) } ?? .opened(.password("anna")))
  }

  @Test("Items that need no device key, or were not tried, are no evidence")
  func noEvidence() {
    let evidence = DeviceKeyEvidence([
      item(nil, .always, through: .available), item(.keyUnwrapFailed, .always, through: .available),
      item(.hardwareMissing, Self.whenUnlocked, through: .deviceBound), item(.noClassKey(.always), nil, through: nil),
    ])
    #expect(evidence == DeviceKeyEvidence() && evidence.isSameDevice == nil && !evidence.isMixed)
    #expect(DeviceKeyEvidence([]).isSameDevice == nil)
  }

  @Test("A decrypted item proves the key of its own class only")
  func eachClass() {
    let (decrypted, failed) = (item(nil, Self.whenUnlocked), item(.keyUnwrapFailed, Self.afterFirstUnlock))
    let failedOfProvenClass = item(.keyUnwrapFailed, Self.whenUnlocked)
    let evidence = DeviceKeyEvidence([decrypted, failed, failedOfProvenClass])
    #expect(evidence.proven == [Self.whenUnlocked.keyClass] && evidence.unproven == [Self.afterFirstUnlock.keyClass])
    #expect(evidence.isMixed && evidence.isSameDevice == nil)
    #expect(evidence.proves(decrypted) && !evidence.proves(failed))
    #expect(evidence.proves(failedOfProvenClass))
  }

  @Test("The device is the source device if all classes with items are proven, and a different one if none is")
  func device() {
    #expect(DeviceKeyEvidence([item(nil, Self.whenUnlocked), item(nil, Self.afterFirstUnlock)]).isSameDevice == true)
    // These two failures are detected only after the item's key was unwrapped.
    #expect(
      DeviceKeyEvidence([item(nil, Self.whenUnlocked), item(.tagMismatch, Self.afterFirstUnlock)]).isSameDevice == true)
    #expect(DeviceKeyEvidence([item(.malformed("x"), Self.whenUnlocked)]).isSameDevice == true)
    #expect(
      DeviceKeyEvidence([item(.keyUnwrapFailed, Self.whenUnlocked), item(.keyUnwrapFailed, Self.afterFirstUnlock)])
        .isSameDevice == false)
    #expect(
      DeviceKeyEvidence([item(nil, Self.whenUnlocked), item(.keyUnwrapFailed, Self.afterFirstUnlock)]).isSameDevice
        == nil)
  }

  @Test("The verdict on a device key follows from the items that were tried with it")
  func verdict() {
    let (decrypted, failed) = (item(nil, Self.whenUnlocked), item(.keyUnwrapFailed, Self.whenUnlocked))
    let withoutDeviceKey = item(nil, .always, through: .available)
    #expect(DeviceKeyVerification([decrypted, withoutDeviceKey]) == .proven)
    // A decrypted item proves its class, even if another item of the class fails.
    #expect(DeviceKeyVerification([decrypted, failed]) == .proven)
    #expect(
      DeviceKeyVerification([decrypted, item(.keyUnwrapFailed, Self.afterFirstUnlock)])
        == .mixed(unproven: [Self.afterFirstUnlock.keyClass]))
    #expect(DeviceKeyVerification([failed, failed, withoutDeviceKey]) == .foreign(itemCount: 2))
    #expect(DeviceKeyVerification([withoutDeviceKey]) == .unknown)
    #expect(DeviceKeyVerification([]) == .noItems)
  }

  @Test("Key classes without a known protection class are distinguished")
  func unknownClasses() {
    let recovery = item(nil, nil, keyClass: .recovery)
    let unknownClass = item(.keyUnwrapFailed, nil, keyClass: KeyClass(rawValue: 13))
    let evidence = DeviceKeyEvidence([recovery, unknownClass])
    #expect(evidence.proven == [.recovery] && evidence.unproven == [KeyClass(rawValue: 13)])
    #expect(!evidence.proves(item(.keyUnwrapFailed, nil)))
  }

  @Test("The evidence for a class decides whether a failed item is damaged or needs another device key")
  func reasons() {
    let evidence = DeviceKeyEvidence([item(nil, Self.whenUnlocked), item(.keyUnwrapFailed, Self.afterFirstUnlock)])
    func reason(_ item: BackupItem, backupHasPassword: Bool = true) -> Reason? {
      item.reason(hardware: evidence, backupHasPassword: backupHasPassword)
    }
    #expect(reason(item(.keyUnwrapFailed, Self.whenUnlocked)) == .tagMismatch)
    #expect(reason(item(.keyUnwrapFailed, Self.afterFirstUnlock)) == .deviceBound)
    #expect(reason(item(.keyUnwrapFailed, .always)) == .deviceBound)
    #expect(reason(item(.keyUnwrapFailed, .always), backupHasPassword: false) == .backupNotEncrypted)
    #expect(
      reason(item(.keyUnwrapFailed, .always, through: .available), backupHasPassword: false) == .tagMismatch)
  }
}
