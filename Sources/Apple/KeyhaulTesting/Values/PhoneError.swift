public import Basics
import KeychainFormats
import VirtualDevice

/// An error of a phone. A problem with a single item is not an error, but an outcome (`Fate`).
public struct PhoneError: ExplainedError {
  /// The kinds of errors, for comparisons in tests.
  public enum Code: String, Sendable {
    /// Items cannot be read until the phone is unlocked.
    case locked
    /// The passcode is wrong.
    case wrongPasscode
    /// The operation requires a passcode, and the phone has none.
    case noPasscode
    /// There is no bundled description with the name, or no file at the path.
    case noSuchFixture
    /// The description is not valid, or the phone cannot be created from it.
    case badFixture
    /// The apps of a new phone are not valid.
    case badApps
    /// The phone has no app with the name.
    case noSuchApp
    /// The phone has several apps or none, and the test does not name one.
    case appNotNamed
    /// The calls of the whole process already go to another phone.
    case processInUse
    /// The phone has changed since the move was planned.
    case staleMove
    /// The result of the restore differs from the prediction.
    case otherOutcome
    /// A lower layer failed. The error has the lower layer's texts.
    case underlying
  }

  /// The kind of error.
  public let code: Code
  /// The category, the summary and the advice.
  public let meaning: ErrorMeaning
  /// The specific reason, such as the names of the phone's apps.
  public let reason: String

  init(_ code: Code, _ category: ErrorCategory, _ summary: String, reason: String, advice: String) {
    self.code = code
    meaning = ErrorMeaning(category, summary, advice: .words(advice))
    self.reason = reason
  }

  /// Creates the error for an error of a lower layer, with advice for tests instead of advice for the program.
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

  /// A summary without a subject, such as "the device is locked".
  public var summary: String { meaning.summary }
  /// The advice, such as "unlock() before it".
  public var advice: String { meaning.advice }

  /// The summary, the reason and the advice, because a failed test prints nothing else of an error.
  public var description: String { "\(summary): \(reason); try: \(advice)" }
}

/// Runs the closure and converts its error.
func translatingErrors<Value: ~Copyable, Failure: ExplainedError>(
  _ body: () throws(Failure) -> Value
) throws(PhoneError) -> Value {
  do throws(Failure) { return try body() } catch { throw PhoneError(error) }
}
