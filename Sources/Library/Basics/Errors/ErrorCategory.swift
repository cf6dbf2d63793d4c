/// The kinds of failure that a caller can handle. The raw value is the identifier in machine-readable output.
public enum ErrorCategory: String, Sendable, CaseIterable {
  /// The operation failed for another reason, such as a full disk.
  case failed
  /// A named device, backup or item does not exist.
  case notFound = "not-found"
  /// Another process is using the device; the same call may succeed later.
  case busy
  /// The password or passcode is wrong.
  case wrongPassword = "wrong-password"
  /// The bytes do not match their format or their digest.
  case damaged
  /// A limit, a rule or a precaution prevents the operation, which would otherwise be possible.
  case refused
  /// The device is locked, and the requested data can be read only while it is unlocked.
  case locked
  /// The device or the backup has changed since the plan was made.
  case stalePlan = "stale-plan"
  /// The arguments contradict each other, or one is missing.
  case usage
}
