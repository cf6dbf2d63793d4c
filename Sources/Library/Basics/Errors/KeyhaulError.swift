package import SystemPackage

/// A failure of an operation on a keychain, a device or a backup, or of a migration.
///
/// Most targets throw this error, so calls between targets need no conversion. The calls of `KeychainCrypto` throw
/// `DataProtectionError`. The error never carries key material, a password or an item's value.
public struct KeyhaulError: ExplainedError {
  /// The part of the library that declares an error's code.
  public struct Domain: Sendable, Hashable {
    /// The part's name.
    public let name: String

    package init(_ name: String) { self.name = name }
  }

  /// A kind of error, for a program to switch on. Each target declares its own codes as static members.
  public struct Code: Sendable {
    /// The identifier in machine-readable output, which is unique in its domain.
    public let rawValue: String
    /// The part of the library that declares the code.
    public let domain: Domain
    /// The category, the summary and the remedy of errors with this code, unless an error overrides them.
    public let meaning: ErrorMeaning

    package init(
      _ rawValue: String, of domain: Domain, _ category: ErrorCategory, _ summary: String, advice: Remedy
    ) {
      self.rawValue = rawValue
      self.domain = domain
      meaning = ErrorMeaning(category, summary, advice: advice)
    }
  }

  /// The contents of an error. They are on the heap, so that a call that can fail returns only a reference.
  private final class Storage: Sendable {
    let code: Code
    let meaning: ErrorMeaning
    let reason: String
    let subject: String?
    let stage: CommitStage
    let errno: Errno?
    let underlying: (any ExplainedError)?

    init(
      _ code: Code, _ meaning: ErrorMeaning, _ reason: String, subject: String?, stage: CommitStage, errno: Errno?,
      underlying: (any ExplainedError)?
    ) {
      self.code = code
      self.meaning = meaning
      self.reason = reason
      self.subject = subject
      self.stage = stage
      self.errno = errno
      self.underlying = underlying
    }
  }

  private let storage: Storage

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of error.
  ///   - reason: The specific reason, with its location.
  ///   - subject: The name or path of the device or file that the error is about.
  ///   - meaning: The error's own category, summary and remedy; `nil` to use those of the code.
  ///   - errno: The error of the system call that failed.
  ///   - underlying: The error of a format, a rule or the cryptography that caused this error.
  ///   - stage: Whether the change was already made when the error happened.
  package init(
    _ code: Code, _ reason: String, subject: String? = nil, meaning: ErrorMeaning? = nil, errno: Errno? = nil,
    underlying: (any ExplainedError)? = nil, stage: CommitStage = .beforeCommit
  ) {
    storage = Storage(
      code, meaning ?? code.meaning, reason, subject: subject, stage: stage, errno: errno, underlying: underlying)
  }

  /// Creates an error with the text of a lower layer's error. A `KeyhaulError` stays as it is.
  public init(_ error: any ExplainedError) {
    if let error = error as? KeyhaulError {
      self = error
    } else {
      self.init(.underlying, error.reason, meaning: error.meaning, underlying: error, stage: error.stage)
    }
  }

  /// The kind of error, for a program to switch on.
  public var code: Code { storage.code }
  /// The category, the summary and the remedy.
  public var meaning: ErrorMeaning { storage.meaning }
  /// The specific reason, with its location. It quotes no value of an item.
  public var reason: String { storage.reason }
  /// The name or path of the device or file that the error is about; `nil` if the caller knows it.
  public var subject: String? { storage.subject }
  /// Whether the change was already made when the error happened.
  public var stage: CommitStage { storage.stage }
  /// The error of a format, a rule or the cryptography that caused this error; `nil` if there is none.
  public var underlying: (any ExplainedError)? { storage.underlying }
  /// The error of the system call that failed; `nil` if none did.
  package var errno: Errno? { storage.errno }

  /// Whether the system had no file descriptor or memory left. No file is at fault then, and the operation stops.
  package var isResourceShortage: Bool { errno?.isResourceShortage == true }

  /// Returns a copy of the error with some parts replaced; `nil` keeps a part.
  package func with(
    reason: String? = nil, subject: String? = nil, meaning: ErrorMeaning? = nil, stage: CommitStage? = nil
  ) -> KeyhaulError {
    KeyhaulError(
      code, reason ?? self.reason, subject: subject ?? self.subject, meaning: meaning ?? self.meaning, errno: errno,
      underlying: underlying, stage: stage ?? self.stage)
  }
}

extension KeyhaulError.Code {
  /// An error of a format, a rule or the cryptography, with its own text (`KeyhaulError.underlying`).
  public static let underlying = Self(
    "underlying", of: .init("underlying"), .failed, "a part of the library failed", advice: "run it again")
}

extension KeyhaulError.Code: Hashable {
  /// Whether two codes have the same identifier in the same domain.
  public static func == (left: Self, right: Self) -> Bool {
    left.rawValue == right.rawValue && left.domain == right.domain
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(rawValue)
    hasher.combine(domain)
  }
}

extension KeyhaulError: Equatable {
  public static func == (left: Self, right: Self) -> Bool {
    left.code == right.code && left.meaning == right.meaning && left.reason == right.reason
      && left.subject == right.subject && left.stage == right.stage && left.errno == right.errno
      && left.underlying?.description == right.underlying?.description
  }
}

/// Calls a function and converts the error that it throws.
///
/// - Parameter convert: Creates the error to throw from the function's error.
@discardableResult
package func converting<Value: ~Copyable, Lower: Error, Upper: Error>(
  _ convert: (Lower) -> Upper, _ body: () throws(Lower) -> Value
) throws(Upper) -> Value {
  do throws(Lower) { return try body() } catch { throw convert(error) }
}

/// Calls a function of a lower layer and converts its error, which keeps its text.
///
/// - Parameter subject: The name of the device or file that the call is about.
@discardableResult
package func translatingErrors<Value: ~Copyable, Lower: ExplainedError>(
  about subject: String? = nil, _ body: () throws(Lower) -> Value
) throws(KeyhaulError) -> Value {
  try converting({ KeyhaulError($0).with(subject: subject) }, body)
}
