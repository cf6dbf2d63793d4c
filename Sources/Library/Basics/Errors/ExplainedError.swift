/// What every error of the library can tell the person at the keyboard, and what a program can switch on.
///
/// No conforming type ever carries key material, a password or an item's value.
public protocol ExplainedError: Error, Sendable, CustomStringConvertible {
  /// What is said of every error of its kind.
  var meaning: ErrorMeaning { get }
  /// The fact found, with its place: "none of 11 class keys unwraps with it".
  var reason: String { get }
  /// On which side of the moment in which a change became final it happened.
  var stage: ChangeStage { get }
}

/// Where an error stands to the moment from which on a change is made.
///
/// What fails after it takes nothing back: whoever reads such an error must not do the work again.
public enum ChangeStage: String, Sendable, CaseIterable {
  /// Nothing of the change was made, or nothing was to be changed.
  case beforeCommit
  /// The change was made and stands.
  case afterCommit
}

extension ExplainedError {
  /// What kind of end this is; the program turns it into its exit code.
  public var category: ErrorCategory { meaning.category }
  /// What happened, without a subject: "the password is wrong". Lower case, no full stop.
  public var summary: String { meaning.summary }
  /// One thing to do next: "the password set when the backup was made".
  public var advice: String { meaning.advice }

  /// Before the commit, unless the error's type says otherwise.
  public var stage: ChangeStage { .beforeCommit }

  public var description: String { "\(summary): \(reason)" }
}

/// What an error means to the person at the keyboard and to a program, whatever was found.
public struct ErrorMeaning: Sendable, Hashable {
  /// The kind of failure, from which the program takes its exit code.
  public let category: ErrorCategory
  /// What happened, in lower case and without a full stop: "the password is wrong".
  public let summary: String
  /// One thing to do next; a program words it as a call of its own.
  public let remedy: Remedy
  /// The remedy in words that fit every program.
  public var advice: String { remedy.sentence }

  /// Creates what is said of every error of one kind.
  public init(_ category: ErrorCategory, _ summary: String, advice remedy: Remedy) {
    self.category = category
    self.summary = summary
    self.remedy = remedy
  }
}

/// The kinds of failure a caller can act on. The raw value is the identifier in machine-readable output.
public enum ErrorCategory: String, Sendable, CaseIterable {
  /// The work failed for a reason that is none of the others, such as a disk that is full.
  case failed
  /// Something that was named is not there: a device, an archive, an item.
  case notFound = "not-found"
  /// Somebody else holds the device; the same call may succeed later.
  case busy
  /// The password or passcode opens nothing.
  case wrongPassword = "wrong-password"
  /// The bytes are not what their format or their digest says.
  case damaged
  /// The work could be done and is not: a limit, a rule or a precaution stands against it.
  case refused
  /// The device is locked, and what is asked for can be read only while it is not.
  case locked
  /// The device or the archive is no longer as it was when the plan was made.
  case stalePlan = "stale-plan"
  /// The call contradicts itself, or lacks a part.
  case usage
}
