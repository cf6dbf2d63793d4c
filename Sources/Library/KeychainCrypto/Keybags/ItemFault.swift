package import KeychainFormats

/// A reason why an item cannot be decrypted or encrypted.
package enum ItemFault: Error, Sendable, Equatable {
  /// The keybag has no key of the item's class.
  case noClassKey
  /// The class key requires a password or passcode that was not given, or was dropped when the device was locked.
  case locked
  /// The class key requires a device key that was not given.
  case deviceBound
  /// The keybag has the class, but its key cannot be unwrapped.
  case classKeyDamaged
  /// The item's key cannot be unwrapped: the bytes were changed, or the class key was unwrapped with a wrong device
  /// key.
  case keyUnwrapFailed
  /// The authentication tag does not match: the bytes were changed.
  case tagMismatch
  /// The item was decrypted, but its content does not follow the format of an item.
  case malformed(FormatError)
  /// The version of the blob is not supported.
  case unsupportedVersion(UInt32)
  /// An error that is not caused by the item.
  case failed(DataProtectionError)
}

/// Calls a closure, and converts a format error to a fault of the item.
func convertingFormatError<Result>(_ body: () throws(FormatError) -> Result) throws(ItemFault) -> Result {
  do throws(FormatError) { return try body() } catch { throw .malformed(error) }
}
