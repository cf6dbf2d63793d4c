/// What unlocking a keybag has found out about one class key.
public enum ClassKeyAvailability: UInt8, Sendable, Hashable, CaseIterable {
  /// It unwrapped, and its check value proves it.
  case available = 1
  /// It went through the device key, whose layer has no check value: only an item that opens proves it.
  case availableThroughDevice = 2
  /// It needs a device key, and none was given.
  case deviceBound = 3
  /// It needs a password or passcode that was not given, or a lock has dropped it.
  case locked = 4
  /// It does not unwrap though others do, or its record cannot be used.
  case damaged = 5
  /// The keybag has no such class.
  case absent = 6
}
