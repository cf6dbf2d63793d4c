import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Evidence about device keys")
struct DeviceKeyEvidenceTests {
  private static let aku = ProtectionClass.whenUnlockedThisDeviceOnly
  private static let cku = ProtectionClass.afterFirstUnlockThisDeviceOnly

  private func item(
    _ failure: BackupItem.Failure?, _ protection: ProtectionClass?, keyClass: KeyClass? = nil,
    through classKey: ClassKeyAvailability? = .availableThroughDevice
  ) -> BackupItem {
    BackupItem(
      index: 0, kind: .genericPassword, protection: protection, keyClass: keyClass, classKey: classKey,
      opening: failure.map { .failed($0) } ?? .opened(.password("anna")))
  }

  @Test("Items that need no device key, or were not tried, are no evidence")
  func nothing() {
    let none = DeviceKeyEvidence([
      item(nil, .always, through: .available), item(.keyUnwrapFailed, .always, through: .available),
      item(.hardwareMissing, Self.aku, through: .deviceBound), item(.noClassKey(.always), nil, through: nil),
    ])
    #expect(none == DeviceKeyEvidence() && none.isSameDevice == nil && !none.isMixed)
    #expect(DeviceKeyEvidence([]).isSameDevice == nil)
  }

  @Test("A decrypted item proves the key of its own class only")
  func eachClass() {
    let (decrypted, failed) = (item(nil, Self.aku), item(.keyUnwrapFailed, Self.cku))
    let proof = DeviceKeyEvidence([decrypted, failed, item(.keyUnwrapFailed, Self.aku)])
    #expect(proof.proven == [Self.aku.keyClass] && proof.unproven == [Self.cku.keyClass])
    #expect(proof.isMixed && proof.isSameDevice == nil)
    #expect(proof.proves(decrypted) && !proof.proves(failed))
    #expect(proof.proves(item(.keyUnwrapFailed, Self.aku)))
  }

  @Test("The device is the same if all classes with items are proven, and another if none is")
  func device() {
    #expect(DeviceKeyEvidence([item(nil, Self.aku), item(nil, Self.cku)]).isSameDevice == true)
    #expect(DeviceKeyEvidence([item(nil, Self.aku), item(.tagMismatch, Self.cku)]).isSameDevice == true)
    #expect(DeviceKeyEvidence([item(.malformed("x"), Self.aku)]).isSameDevice == true)
    #expect(
      DeviceKeyEvidence([item(.keyUnwrapFailed, Self.aku), item(.keyUnwrapFailed, Self.cku)]).isSameDevice == false)
    #expect(DeviceKeyEvidence([item(nil, Self.aku), item(.keyUnwrapFailed, Self.cku)]).isSameDevice == nil)
  }

  @Test("Keys can be wrapped with a device key if it is proven or no item can be lost")
  func verdict() {
    let (decrypted, failed) = (item(nil, Self.aku), item(.keyUnwrapFailed, Self.aku))
    let needsNone = item(nil, .always, through: .available)
    #expect(DeviceKeyVerification([decrypted, needsNone]) == .proven)
    // A decrypted item proves its class, even if another item of it fails.
    #expect(DeviceKeyVerification([decrypted, failed]) == .proven)
    #expect(
      DeviceKeyVerification([decrypted, item(.keyUnwrapFailed, Self.cku)]) == .mixed(unproven: [Self.cku.keyClass]))
    #expect(DeviceKeyVerification([failed, failed, needsNone]) == .foreign(itemCount: 2))
    #expect(DeviceKeyVerification([needsNone]) == .unknown)
    #expect(DeviceKeyVerification([]) == .noItems)
  }

  @Test("Classes without a known kind of item are distinguished")
  func unknownClasses() {
    let recovery = item(nil, nil, keyClass: .recovery)
    let thirteen = item(.keyUnwrapFailed, nil, keyClass: KeyClass(rawValue: 13))
    let proof = DeviceKeyEvidence([recovery, thirteen])
    #expect(proof.proven == [.recovery] && proof.unproven == [KeyClass(rawValue: 13)])
    #expect(!proof.proves(item(.keyUnwrapFailed, nil)))
  }

  @Test("The evidence for a class decides whether a failed item is damaged or needs another device key")
  func reasons() {
    let proof = DeviceKeyEvidence([item(nil, Self.aku), item(.keyUnwrapFailed, Self.cku)])
    func reason(_ item: BackupItem, _ hasPassword: Bool = true) -> Reason? {
      item.reason(hardware: proof, backupHasPassword: hasPassword)
    }
    #expect(reason(item(.keyUnwrapFailed, Self.aku)) == .tagMismatch)
    #expect(reason(item(.keyUnwrapFailed, Self.cku)) == .deviceBound)
    #expect(reason(item(.keyUnwrapFailed, .always)) == .deviceBound)
    #expect(reason(item(.keyUnwrapFailed, .always), false) == .backupNotEncrypted)
    #expect(reason(item(.keyUnwrapFailed, .always, through: .available), false) == .tagMismatch)
  }
}
