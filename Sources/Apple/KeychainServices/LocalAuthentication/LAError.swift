// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// The domain of `LAError`.
public let LAErrorDomain = "com.apple.LocalAuthentication"

/// How an authentication ended that did not succeed. Source: Apple `LAError.h`.
public struct LAError: Error, Hashable, CustomNSError {
  /// How it ended. Virtual devices give the first two, `passcodeNotSet`, `invalidContext` and `notInteractive`.
  public enum Code: Int, Sendable, CaseIterable {
    /// The person showed a wrong finger, face or passcode.
    case authenticationFailed = -1
    /// The person dismissed the dialog.
    case userCancel = -2
    /// The person chose another way than biometry.
    case userFallback = -3
    /// The system ended the dialog.
    case systemCancel = -4
    /// The device has no passcode, which both policies need.
    case passcodeNotSet = -5
    /// The device has no sensor.
    case biometryNotAvailable = -6
    /// No finger and no face is enrolled.
    case biometryNotEnrolled = -7
    /// There were too many wrong attempts.
    case biometryLockout = -8
    /// The app ended the dialog.
    case appCancel = -9
    /// `invalidate()` was called before.
    case invalidContext = -10
    /// A dialog was needed and not allowed.
    case notInteractive = -1004
  }

  /// The domain of the error as an `NSError`.
  public static var errorDomain: String { LAErrorDomain }
  /// The code of a wrong finger, face or passcode.
  public static let authenticationFailed = Code.authenticationFailed
  /// The code of a person who dismissed the dialog.
  public static let userCancel = Code.userCancel
  /// The code of a person who chose another way.
  public static let userFallback = Code.userFallback
  /// The code of a dialog that the system ended.
  public static let systemCancel = Code.systemCancel
  /// The code of a device without a passcode.
  public static let passcodeNotSet = Code.passcodeNotSet
  /// The code of a device without a sensor.
  public static let biometryNotAvailable = Code.biometryNotAvailable
  /// The code of a device on which nothing is enrolled.
  public static let biometryNotEnrolled = Code.biometryNotEnrolled
  /// The code of too many wrong attempts.
  public static let biometryLockout = Code.biometryLockout
  /// The code of a dialog that the app ended.
  public static let appCancel = Code.appCancel
  /// The code of a context that was ended before.
  public static let invalidContext = Code.invalidContext
  /// The code of a dialog that was not allowed.
  public static let notInteractive = Code.notInteractive

  /// How the authentication ended.
  public let code: Code

  /// Creates an error of a code.
  public init(_ code: Code) { self.code = code }

  /// Reads an error that the Objective-C calls give.
  ///
  /// - Returns: `nil` for an error of another domain, and for a code that is not one of `Code`.
  public init?(_nsError error: NSError) {
    guard error.domain == LAErrorDomain, let code = Code(rawValue: error.code) else { return nil }
    self.init(code)
  }

  /// The number of the code, as an `NSError` has it.
  public var errorCode: Int { code.rawValue }

  /// As the Objective-C calls give it.
  var cocoaError: NSError { NSError(domain: LAErrorDomain, code: code.rawValue) }
}

/// Makes `error as? LAError` read an `NSError`, as on Apple's systems.
extension LAError: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSError { cocoaError }

  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout LAError?) {
    result = LAError(_nsError: source)
  }

  public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout LAError?) -> Bool {
    result = LAError(_nsError: source)
    return result != nil
  }

  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> LAError {
    source.flatMap { LAError(_nsError: $0) } ?? LAError(.authenticationFailed)
  }
}
