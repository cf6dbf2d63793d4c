import DataProtection
import KeychainFormats

extension ArchivedItem {
  /// Why the item does not open here, as every report names it; `nil` where it opens.
  ///
  /// - Parameters:
  ///   - isSameDevice: What all items of the archive prove about the hardware key that was tried (`provesSameDevice`).
  ///   - backupHasPassword: Without one, also the items that could go anywhere need the hardware.
  public func reason(isSameDevice: Bool?, backupHasPassword: Bool) -> Reason? {
    guard case .failed(let failure) = opening else { return nil }
    return reason(of: failure, isSameDevice: isSameDevice, backupHasPassword: backupHasPassword)
  }

  /// The same for a failure of this item.
  public func reason(of failure: Failure, isSameDevice: Bool?, backupHasPassword: Bool) -> Reason {
    if needsOtherHardware(isSameDevice: isSameDevice) {
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
  /// hardware's layer has no check value, so until some item has proved the device, nothing tells another device from
  /// changed bytes.
  public func needsOtherHardware(isSameDevice: Bool?) -> Bool {
    switch opening {
    case .failed(.hardwareMissing): true
    case .failed(.keyUnwrapFailed): classKey == .availableThroughDevice && isSameDevice != true
    case .failed, .opened: false
    }
  }
}

extension Sequence<ArchivedItem> {
  /// Whether the hardware key that was tried on the items is that of the device which made the archive: `true` where one
  /// of them opens with it, `false` where none does, `nil` where there is none to try.
  public var provesSameDevice: Bool? {
    var proof: Bool?
    for item in self {
      guard let own = item.provesHardware else { continue }
      if own { return true }
      proof = false
    }
    return proof
  }
}
