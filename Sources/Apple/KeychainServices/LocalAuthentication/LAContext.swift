import Basics
public import Foundation
import KeychainFormats
import VirtualDevice

/// A dialog with the person at the device, who answers as `KeychainClient.authenticationOutcome` says.
///
/// A person who was authenticated once by a context is not asked again by the keychain calls that it goes along with.
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

  /// A dialog on the device that `DefaultKeychain` names now.
  public init() { client = try? DefaultKeychain.client() }

  /// Whether keychain calls with this context fail instead of asking.
  open var interactionNotAllowed: Bool {
    get { state.withLock(\.isInteractionForbidden) }
    set { state.withLock { $0.isInteractionForbidden = newValue } }
  }

  /// The sentence that a dialog shows, unless the query has one.
  open var localizedReason: String {
    get { state.withLock(\.localizedReason) }
    set { state.withLock { $0.localizedReason = newValue } }
  }

  /// The title of the button for another way than biometry. Kept, but of no effect here.
  open var localizedFallbackTitle: String? {
    get { state.withLock(\.localizedFallbackTitle) }
    set { state.withLock { $0.localizedFallbackTitle = newValue } }
  }

  /// The title of the button that dismisses the dialog. Kept, but of no effect here.
  open var localizedCancelTitle: String? {
    get { state.withLock(\.localizedCancelTitle) }
    set { state.withLock { $0.localizedCancelTitle = newValue } }
  }

  /// Seconds. Kept, but of no effect here: every new context asks.
  open var touchIDAuthenticationAllowableReuseDuration: TimeInterval {
    get { state.withLock(\.reuseDuration) }
    set { state.withLock { $0.reuseDuration = newValue } }
  }

  /// Virtual devices look like a phone with a face sensor.
  open var biometryType: LABiometryType { .faceID }

  /// Whether the person could be asked. Both policies need a passcode, as on a phone.
  open func canEvaluatePolicy(_ policy: LAPolicy, error: UnsafeMutablePointer<NSError?>?) -> Bool {
    guard let obstacle else { return true }
    error?.pointee = LAError(obstacle).cocoaError
    return false
  }

  /// Asks the person.
  ///
  /// - Parameters:
  ///   - policy: Biometry, or biometry and the passcode; the person answers both alike.
  ///   - localizedReason: The sentence that the dialog shows.
  ///   - reply: Called once, on another thread, or on the caller's if no thread can be started.
  open func evaluatePolicy(
    _ policy: LAPolicy, localizedReason: String, reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) {
    let failure = evaluate(localizedReason)
    SecureThread.detach { reply(failure == nil, failure.map { LAError($0) }) }
  }

  /// Asks the person.
  ///
  /// - Returns: Always true.
  /// - Throws: `LAError`.
  @discardableResult
  open func evaluatePolicy(_ policy: LAPolicy, localizedReason: String) async throws -> Bool {
    if let failure = evaluate(localizedReason) { throw LAError(failure) }
    return true
  }

  /// Asks the person for what an access control wants of them before the operation.
  ///
  /// - Parameters:
  ///   - accessControl: Where it leaves the operation free, nobody is asked; where it allows it to nobody, that fails.
  ///   - operation: What is to be done with the item or key.
  ///   - localizedReason: The sentence that the dialog shows.
  ///   - reply: Called once, on another thread, or on the caller's if no thread can be started.
  open func evaluateAccessControl(
    _ accessControl: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String,
    reply: @escaping @Sendable (Bool, (any Error)?) -> Void
  ) {
    let required = accessControl.control.requirement(for: operation.accessOperation)
    let failure: LAError.Code? =
      if required.isForbidden { .authenticationFailed } else if required.isEmpty { nil } else {
        evaluate(localizedReason)
      }
    SecureThread.detach { reply(failure == nil, failure.map { LAError($0) }) }
  }

  /// Brings a password for items made with `.applicationPassword`; `nil` takes it away.
  @discardableResult
  open func setCredential(_ credential: Data?, type: LACredentialType) -> Bool {
    state.withLock { state in
      guard !state.isInvalid else { return false }
      state.applicationPassword = credential.map { SensitiveBytes(copying: Array($0)) }
      return true
    }
  }

  /// Returns whether a password was brought along.
  open func isCredentialSet(_ type: LACredentialType) -> Bool {
    state.withLock { $0.applicationPassword != nil }
  }

  /// Ends the context: what the person answered no longer counts, and nobody is asked again.
  open func invalidate() {
    state.withLock { state in
      state.isInvalid = true
      state.outcome = nil
      state.applicationPassword = nil
    }
  }

  private var obstacle: LAError.Code? {
    if state.withLock(\.isInvalid) { return .invalidContext }
    guard let client, (try? client.withSession(.reading) { $0.isPasscodeSet }) == true else { return .passcodeNotSet }
    return nil
  }

  /// - Returns: How it failed; `nil` if the person was authenticated.
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

  /// What keychain calls take from the context.
  var keychainContext: AuthenticationContext {
    state.withLock { state in
      AuthenticationContext(
        isInteractionAllowed: !state.isInteractionForbidden && !state.isInvalid, outcome: state.outcome,
        applicationPassword: state.applicationPassword,
        prompt: state.localizedReason.isEmpty ? nil : state.localizedReason)
    }
  }
}

/// Two contexts are equal where they are one object.
extension LAContext: Hashable {
  public static func == (left: LAContext, right: LAContext) -> Bool { left === right }

  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
