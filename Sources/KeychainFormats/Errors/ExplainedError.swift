/// What every error of the library can tell the person at the keyboard, and what a program can switch on.
///
/// No conforming type ever carries key material, a password or an item's value.
public protocol ExplainedError: Error, Sendable, CustomStringConvertible {
  /// What is said of every error of its kind.
  var explanation: ErrorExplanation { get }
  /// The fact found, with its place: "none of 11 class keys unwraps with it".
  var reason: String { get }
}

extension ExplainedError {
  /// What kind of end this is; the program turns it into its exit code.
  public var category: ErrorCategory { explanation.category }
  /// What happened, without a subject: "the password is wrong". Lower case, no full stop.
  public var summary: String { explanation.summary }
  /// One thing to do next: "the password set when the backup was made".
  public var advice: String { explanation.advice }

  public var description: String { "\(summary): \(reason)" }
}

/// What an error means to the person at the keyboard and to a program, whatever was found.
public struct ErrorExplanation: Sendable, Hashable {
  public let category: ErrorCategory
  public let summary: String
  public let advice: String

  public init(_ category: ErrorCategory, _ summary: String, advice: String) {
    self.category = category
    self.summary = summary
    self.advice = advice
  }
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
