import DataProtection
import KeychainFormats

extension ArchivedItem {
  /// Why the item does not open here; `nil` for one that does.
  ///
  /// - Parameters:
  ///   - hasPassword: Whether the backup has one: without, also what may migrate needs the device that made it.
  ///   - isSameDevice: Whether the hardware key that was tried is proved to be that device's.
  public func reason(backupHasPassword hasPassword: Bool, isSameDevice: Bool) -> Reason? {
    switch opening {
    case .opened: nil
    case .failed(.hardwareMissing): hardwareReason(hasPassword)
    // The hardware's layer has no check value: until some item proved it, the key may be another device's.
    case .failed(.keyUnwrapFailed) where classKey == .availableThroughDevice && !isSameDevice:
      hardwareReason(hasPassword)
    case .failed(.keyUnwrapFailed), .failed(.tagMismatch): .tagMismatch
    case .failed(.noClassKey), .failed(.classKeyDamaged): .noClassKey
    case .failed(.malformed), .failed(.missingData): .malformed
    case .failed(.unsupportedVersion): .unsupportedVersion
    }
  }

  private func hardwareReason(_ hasPassword: Bool) -> Reason {
    hasPassword || protection?.isThisDeviceOnly != false ? .deviceBound : .backupNotEncrypted
  }
}
