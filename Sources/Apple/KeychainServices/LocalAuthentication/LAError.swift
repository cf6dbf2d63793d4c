// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// The domain of `LAError`.
public let LAErrorDomain = "com.apple.LocalAuthentication"

/// A failed authentication. Source: Apple `LAError.h`.
public struct LAError: Error, Hashable, CustomNSError {
  /// The reason for the failure. Virtual devices report only `authenticationFailed`, `userCancel`, `passcodeNotSet`,
  /// `invalidContext` and `notInteractive`.
  public enum Code: Int, Sendable, CaseIterable {
    /// The user presented a wrong finger, face or passcode.
    case authenticationFailed = -1
    /// The user dismissed the dialog.
    case userCancel = -2
    /// The user chose an alternative to biometry.
    case userFallback = -3
    /// The system ended the dialog.
    case systemCancel = -4
    /// The device has no passcode, which both policies require.
    case passcodeNotSet = -5
    /// The device has no sensor.
    case biometryNotAvailable = -6
    /// No finger and no face is enrolled.
    case biometryNotEnrolled = -7
    /// There were too many wrong attempts.
    case biometryLockout = -8
    /// The app ended the dialog.
    case appCancel = -9
    /// The context is invalid.
    case invalidContext = -10
    /// A dialog was required but not allowed.
    case notInteractive = -1004
  }

  /// The domain of the error as an `NSError`.
  public static var errorDomain: String { LAErrorDomain }
  /// The code for a wrong finger, face or passcode.
  public static let authenticationFailed = Code.authenticationFailed
  /// The code for a dialog that the user dismissed.
  public static let userCancel = Code.userCancel
  /// The code for an alternative to biometry.
  public static let userFallback = Code.userFallback
  /// The code for a dialog that the system ended.
  public static let systemCancel = Code.systemCancel
  /// The code for a device without a passcode.
  public static let passcodeNotSet = Code.passcodeNotSet
  /// The code for a device without a sensor.
  public static let biometryNotAvailable = Code.biometryNotAvailable
  /// The code for a device without enrolled biometry.
  public static let biometryNotEnrolled = Code.biometryNotEnrolled
  /// The code for too many wrong attempts.
  public static let biometryLockout = Code.biometryLockout
  /// The code for a dialog that the app ended.
  public static let appCancel = Code.appCancel
  /// The code for an invalid context.
  public static let invalidContext = Code.invalidContext
  /// The code for a dialog that was not allowed.
  public static let notInteractive = Code.notInteractive

  /// The reason for the failure.
  public let code: Code

  /// Creates an error.
  public init(_ code: Code) { self.code = code }

  /// Creates an error from the error of an Objective-C call; `nil` if it has another domain or an unknown code.
  public init?(_nsError error: NSError) {
    guard error.domain == LAErrorDomain, let code = Code(rawValue: error.code) else { return nil }
    self.init(code)
  }

  /// The code as a number.
  public var errorCode: Int { code.rawValue }

  /// The error in the form of Objective-C calls.
  var cocoaError: NSError { NSError(domain: LAErrorDomain, code: code.rawValue) }
}

/// Allows `error as? LAError` for an `NSError`, as on Apple's systems.
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
