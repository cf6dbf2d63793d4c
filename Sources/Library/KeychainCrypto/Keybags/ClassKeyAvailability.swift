/// The result of unwrapping a class key.
public enum ClassKeyAvailability: UInt8, Sendable, Hashable, CaseIterable {
  /// The key was unwrapped, and its integrity check proves it.
  case available = 1
  /// The key was unwrapped with the device key, without an integrity check. Only a decrypted item proves it.
  case availableThroughDevice = 2
  /// The key requires a device key that was not given.
  case deviceBound = 3
  /// The key requires a password or passcode that was not given, or was dropped when the device was locked.
  case locked = 4
  /// The key cannot be unwrapped although others can, or its record is not usable.
  case damaged = 5
  /// The keybag does not have the class.
  case absent = 6
}
