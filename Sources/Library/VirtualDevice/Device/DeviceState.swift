/// Which keys of a device are in memory. The raw value is the one of machine-readable output.
public enum DeviceState: String, Sendable, CaseIterable, Hashable {
  /// All class keys.
  case unlocked
  /// Those of "after first unlock" and "always".
  case locked
  /// Those of "always" alone, as after a restart.
  case beforeFirstUnlock = "before-first-unlock"
}
