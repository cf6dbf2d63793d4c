import Basics
public import Foundation
import KeychainFormats
import VirtualDevice

/// An authentication dialog of the device's user, who reacts according to `KeychainClient.authenticationOutcome`.
///
/// After a context has authenticated the user, keychain calls that use the context do not ask again.
open class LAContext: @unchecked Sendable {
  private struct State {
    var isInteractionForbidden = false
    var isInvalid = false
    var outcome: AuthenticationOutcome?
    var applicationPassword: SensitiveBytes?
    var localizedReason = ""
    var localizedFallbackTitle: String?
    var localizedCancelTitle: String?
    var reuseDuration: TimeInterval = 0
  }

  private let state = Locked(State())
  private let client: KeychainClient?

  /// Creates a context for the current device of `DefaultKeychain`.
  public init() { client = try? DefaultKeychain.client() }

  /// Whether keychain calls with this context fail if they require authentication.
  open var interactionNotAllowed: Bool {
    get { state.withLock(\.isInteractionForbidden) }
    set { state.withLock { $0.isInteractionForbidden = newValue } }
  }

  /// The text of dialogs, unless the query has one.
  open var localizedReason: String {
    get { state.withLock(\.localizedReason) }
    set { state.withLock { $0.localizedReason = newValue } }
  }

  /// The title of the button for an alternative to biometry. Stored without effect.
  open var localizedFallbackTitle: String? {
    get { state.withLock(\.localizedFallbackTitle) }
    set { state.withLock { $0.localizedFallbackTitle = newValue } }
  }

  /// The title of the button that dismisses the dialog. Stored without effect.
  open var localizedCancelTitle: String? {
    get { state.withLock(\.localizedCancelTitle) }
    set { state.withLock { $0.localizedCancelTitle = newValue } }
  }

  /// A duration in seconds. Stored without effect, because every new context asks the user.
  open var touchIDAuthenticationAllowableReuseDuration: TimeInterval {
    get { state.withLock(\.reuseDuration) }
    set { state.withLock { $0.reuseDuration = newValue } }
  }

  /// The sensor of virtual devices, which is a face sensor.
  open var biometryType: LABiometryType { .faceID }

  /// Returns whether the user can be asked. Both policies require a passcode, as on an iPhone.
  ///
  /// - Parameters:
  ///   - policy: The policy, which makes no difference.
  ///   - error: Receives the `LAError` if the user cannot be asked: `.passcodeNotSet` if the device has no passcode,
  ///     `.invalidContext` after `invalidate()`. May be `nil`.
  open func canEvaluatePolicy(_ policy: LAPolicy, error: UnsafeMutablePointer<NSError?>?) -> Bool {
    guard let obstacle else { return true }
    error?.pointee = LAError(obstacle).cocoaError
    return false
  }

  /// Authenticates the user.
  ///
  /// - Parameters:
  ///   - policy: Biometry with or without the passcode. The user's reaction is the same.
  ///   - localizedReason: The text of the dialog.
  ///   - reply: Called once, on another thread, or on the caller's if no thread can be started. Receives `true`, or
  ///     `false` with an `LAError`: `.authenticationFailed`, `.userCancel`, `.notInteractive`, `.passcodeNotSet` or
  ///     `.invalidContext`.
  open func evaluatePolicy(
    _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) {
    let failure = evaluate(localizedReason)
    SecureThread.detach { reply(failure == nil, failure.map { LAError($0) }) }
  }

  /// Authenticates the user.
  ///
  /// - Parameters:
  ///   - policy: Biometry with or without the passcode. The user's reaction is the same.
  ///   - localizedReason: The text of the dialog.
  /// - Returns: `true`.
  /// - Throws: `LAError` if the user was not authenticated: `.authenticationFailed`, `.userCancel`, `.notInteractive` (no
  ///   user, or `interactionNotAllowed` is set), `.passcodeNotSet` or `.invalidContext`.
  @discardableResult
  open func evaluatePolicy(_ policy: LAPolicy, localizedReason: String) async throws -> Bool {
    if let failure = evaluate(localizedReason) { throw LAError(failure) }
    return true
  }

  /// Requests the authentication that an access control requires for an operation.
  ///
  /// - Parameters:
  ///   - accessControl: The access control. If it requires nothing, the user is not asked. If it forbids the operation,
  ///     the authentication fails.
  ///   - operation: The operation, which determines the required authentication.
  ///   - localizedReason: The text of the dialog.
  ///   - reply: Called once, on another thread, or on the caller's if no thread can be started.
  open func evaluateAccessControl(
    _ accessControl: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String,
    reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) {
    let required = accessControl.control.requirement(for: operation.accessOperation)
    let failure: LAError.Code? =
      if required.isForbidden {
        .authenticationFailed
      } else if required.isEmpty {
        nil
      } else {
        evaluate(localizedReason)
      }
    SecureThread.detach { reply(failure == nil, failure.map { LAError($0) }) }
  }

  /// Sets the password for items with `.applicationPassword`, or removes it.
  ///
  /// - Parameters:
  ///   - credential: The password, or `nil` to remove it.
  ///   - type: The type, `.applicationPassword`.
  /// - Returns: Whether the password was set or removed; `false` after `invalidate()`.
  @discardableResult
  open func setCredential(_ credential: Data?, type: LACredentialType) -> Bool {
    state.withLock { state in
      guard !state.isInvalid else { return false }
      state.applicationPassword = credential.map { SensitiveBytes(copying: Array($0)) }
      return true
    }
  }

  /// Returns whether a password is set.
  open func isCredentialSet(_ type: LACredentialType) -> Bool {
    state.withLock { $0.applicationPassword != nil }
  }

  /// Invalidates the context. Earlier authentication no longer counts, and the user is not asked again.
  open func invalidate() {
    state.withLock { state in
      state.isInvalid = true
      state.outcome = nil
      state.applicationPassword = nil
    }
  }

  /// The reason why the user cannot be asked, or `nil` if there is none.
  private var obstacle: LAError.Code? {
    if state.withLock(\.isInvalid) { return .invalidContext }
    guard let client, (try? client.withSession(.reading) { $0.isPasscodeSet }) == true else { return .passcodeNotSet }
    return nil
  }

  /// Asks the user.
  ///
  /// - Parameter reason: Not used, because a virtual device shows no dialog.
  /// - Returns: The failure, or `nil` if the user was authenticated.
  private func evaluate(_ reason: String) -> LAError.Code? {
    if let obstacle { return obstacle }
    if interactionNotAllowed { return .notInteractive }
    let outcome = client?.authenticationOutcome ?? .unavailable
    switch outcome {
    case .allow:
      state.withLock { $0.outcome = .allow }
      return nil
    case .deny: return .authenticationFailed
    case .cancel: return .userCancel
    case .unavailable: return .notInteractive
    }
  }

  /// The context, converted for keychain calls.
  var keychainContext: AuthenticationContext {
    state.withLock { state in
      AuthenticationContext(
        isInteractionAllowed: !state.isInteractionForbidden && !state.isInvalid, outcome: state.outcome,
        applicationPassword: state.applicationPassword,
        prompt: state.localizedReason.isEmpty ? nil : state.localizedReason)
    }
  }
}

/// Contexts are equal if they are the same object.
extension LAContext: Hashable {
  public static func == (left: LAContext, right: LAContext) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
