public import Basics
import KeychainFormats
import VirtualDevice

/// Why a phone cannot do what a test asks of it. What becomes of a single item is a `Fate` instead.
public struct PhoneError: ExplainedError {
  /// The kinds of such errors, for a test to compare with.
  public enum Code: String, Sendable {
    /// Items cannot be read until the phone is unlocked.
    case locked
    /// The passcode is another one.
    case wrongPasscode
    /// The phone has no passcode, and what was asked needs one.
    case noPasscode
    /// No bundled description has the name, or no file is there.
    case noSuchFixture
    /// The description of a phone is not one, or the phone does not take it.
    case badFixture
    /// The apps that a new phone was to have.
    case badApps
    /// The phone has no app of the name.
    case noSuchApp
    /// The phone has several apps, or none, and the test says of none that it runs.
    case appNotNamed
    /// Another phone's `run` has the whole process.
    case processInUse
    /// The phone has changed since the move was decided.
    case outdatedMove
    /// The restore did not do what the move had said.
    case otherOutcome
    /// A part below failed; its own words are carried on.
    case underlying
  }

  /// The kind of error.
  public let code: Code
  /// The category, the summary and the advice.
  public let meaning: ErrorMeaning
  /// The fact found, with its place.
  public let reason: String

  init(_ code: Code, _ category: ErrorCategory, _ summary: String, _ reason: String, advice: String) {
    self.code = code
    meaning = ErrorMeaning(category, summary, advice: .words(advice))
    self.reason = reason
  }

  /// Carries on what a part below says, with advice for a test where that part's is for the program.
  init(_ error: some ExplainedError) {
    reason = error.reason
    var advice = error.advice
    switch (error as? KeyhaulError)?.code {
    case .wrongPasscode: code = .wrongPasscode
    case .noPasscode:
      code = .noPasscode
      advice = "Phone(passcode:) or setPasscode(_:)"
    case .badFixture, .unsupportedVersion: code = .badFixture
    default:
      code = error.category == .locked ? .locked : .underlying
      if code == .locked { advice = "unlock() before it" }
    }
    meaning = ErrorMeaning(error.category, error.summary, advice: .words(advice))
  }

  /// What happened, without a subject: "the device is locked".
  public var summary: String { meaning.summary }
  /// One thing to do next: "unlock() before it".
  public var advice: String { meaning.advice }

  /// All three sentences: a failed test prints nothing else of an error.
  public var description: String { "\(summary): \(reason); try: \(advice)" }
}

/// Turns an error of a part below into one of this module.
func telling<Value: ~Copyable, Failure: ExplainedError>(
  _ body: () throws(Failure) -> Value
) throws(PhoneError) -> Value {
  do throws(Failure) { return try body() } catch { throw PhoneError(error) }
}
