import KeychainCrypto
import KeychainFormats
public import KeychainRules

extension ArchivedItem {
  /// Why the item does not open here, as every report names it; `nil` where it opens.
  ///
  /// - Parameters:
  ///   - hardware: What all items of the archive prove about the hardware key that was tried.
  ///   - backupHasPassword: Without one, also the items that could go anywhere need the hardware.
  public func reason(hardware: HardwareProof, backupHasPassword: Bool) -> Reason? {
    guard let failure else { return nil }
    return reason(of: failure, hardware: hardware, backupHasPassword: backupHasPassword)
  }

  /// The same for a failure of this item.
  public func reason(of failure: Failure, hardware: HardwareProof, backupHasPassword: Bool) -> Reason {
    if mayNeedOtherHardware(hardware) {
      let isMigratable = protection?.isThisDeviceOnly == false
      return isMigratable && !backupHasPassword ? .backupNotEncrypted : .deviceBound
    }
    return switch failure {
    case .noClassKey, .classKeyDamaged: .noClassKey
    case .hardwareMissing: .deviceBound
    case .keyUnwrapFailed, .tagMismatch: .tagMismatch
    case .malformed, .missingData: .malformed
    case .unsupportedVersion: .unsupportedVersion
    }
  }

  /// Whether what keeps the item closed is the hardware of the device that made it, as far as anybody can tell: the
  /// hardware's layer has no check value, so until some item has proved the key of this one's class, nothing tells
  /// other hardware from changed bytes.
  public func mayNeedOtherHardware(_ hardware: HardwareProof) -> Bool {
    switch failure {
    case .hardwareMissing: true
    case .keyUnwrapFailed: classKey == .availableThroughDevice && !hardware.proves(self)
    case nil, .noClassKey, .classKeyDamaged, .tagMismatch, .malformed, .unsupportedVersion, .missingData: false
    }
  }
}
