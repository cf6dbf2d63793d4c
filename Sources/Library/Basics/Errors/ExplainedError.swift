/// An error with a description for users and a category that programs can switch on.
///
/// A conforming type never contains key material, a password or an item's value.
public protocol ExplainedError: Error, Sendable, CustomStringConvertible {
  /// The description that all errors of this kind share.
  var meaning: ErrorMeaning { get }
  /// The specific reason, with its location: "none of 11 class keys unwraps with it".
  var reason: String { get }
  /// Whether the error occurred before or after the change was committed.
  var stage: CommitStage { get }
}

/// Whether an error occurred before or after a change was committed.
///
/// An error after the commit undoes nothing, so a caller that receives one must not repeat the change.
public enum CommitStage: String, Sendable, CaseIterable {
  /// No part of the change was made, or no change was intended.
  case beforeCommit
  /// The change was made and is permanent.
  case afterCommit
}

extension ExplainedError {
  /// The kind of failure, from which the program derives its exit code.
  public var category: ErrorCategory { meaning.category }
  /// A short description without a subject, in lower case and without a full stop: "the password is wrong".
  public var summary: String { meaning.summary }
  /// A suggestion for the next step: "the password set when the backup was made".
  public var advice: String { meaning.advice }

  /// Before the commit, unless the error's type overrides this.
  public var stage: CommitStage { .beforeCommit }

  public var description: String { "\(summary): \(reason)" }
}

/// The part of an error's text that depends only on its kind, not on the specific reason.
public struct ErrorMeaning: Sendable, Hashable {
  /// The kind of failure, from which the program derives its exit code.
  public let category: ErrorCategory
  /// A short description in lower case and without a full stop: "the password is wrong".
  public let summary: String
  /// A suggestion for the next step, which a program can express as a command of its own.
  public let remedy: Remedy
  /// The suggestion in words that fit every program.
  public var advice: String { remedy.sentence }

  /// Creates the description of one kind of error.
  package init(_ category: ErrorCategory, _ summary: String, advice remedy: Remedy) {
    self.category = category
    self.summary = summary
    self.remedy = remedy
  }
}

/// The kinds of failure that a caller can handle. The raw value is the identifier in machine-readable output.
public enum ErrorCategory: String, Sendable, CaseIterable {
  /// The operation failed for a reason without its own category, such as a full disk.
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
