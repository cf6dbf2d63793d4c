public import KeychainFormats

/// What is wrong with one item, to switch on.
public enum ItemFault: Error, Sendable, Equatable {
  /// The keybag has no key of the item's class.
  case noClassKey
  /// The class key needs a password or passcode that was not given, or a lock has dropped it.
  case locked
  /// The class key needs a device key, and none was given.
  case deviceBound
  /// The keybag has the class, but its key does not unwrap.
  case classKeyDamaged
  /// The item's own key does not unwrap: changed bytes, or for a class that went through a device key, another device.
  case keyUnwrapFailed
  /// Changed bytes.
  case tagMismatch
  /// The key opens it, and what is inside follows no format of an item.
  case malformed(FormatError)
  /// The blob is of a version that is not opened here.
  case unsupportedVersion(UInt32)
  /// Not the item's fault.
  case failed(DataProtectionError)
}
