/// What every error of the library can tell the person at the keyboard, and what a program can switch on.
///
/// No conforming type ever carries key material, a password or an item's value.
public protocol ExplainedError: Error, Sendable, CustomStringConvertible {
  /// What kind of end this is; the program turns it into its exit code.
  var category: ErrorCategory { get }
  /// What happened, without a subject: "the password is wrong". Lower case, no full stop.
  var summary: String { get }
  /// The fact found, with its place: "none of 11 class keys unwraps with it".
  var reason: String { get }
  /// One thing to do next: "the password set when the backup was made".
  var advice: String { get }
}

extension ExplainedError {
  public var description: String { "\(summary): \(reason)" }
}

/// The kinds of failure a caller can act on. The raw value is the identifier in machine-readable output.
public enum ErrorCategory: String, Sendable, CaseIterable {
  case failed
  case notFound = "not-found"
  case busy
  case wrongPassword = "wrong-password"
  case damaged
  case refused
  case locked
  case stalePlan = "stale-plan"
  case usage
}
