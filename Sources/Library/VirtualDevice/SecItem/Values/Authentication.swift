package import Basics
import KeychainFormats

/// What the person at a device does when an app's call asks for them.
public enum AuthenticationOutcome: String, Sendable, CaseIterable {
  /// Gives what is asked for.
  case allow
  /// Gives a wrong finger, face or passcode until the system gives up.
  case deny
  /// Dismisses the dialog.
  case cancel
  /// Nobody is there, or the dialog cannot be shown.
  case unavailable = "none"

  /// What the call ends with; `nil` if it goes on.
  var error: SecItemError? {
    switch self {
    case .allow: nil
    case .deny: SecItemError(.authFailed, "the user could not be authenticated")
    case .cancel: SecItemError(.userCanceled, "the user dismissed the dialog")
    case .unavailable:
      SecItemError(
        .interactionNotAllowed,
        "the item requires authentication, but there is no user to ask")
    }
  }
}

/// What a person is asked for.
package struct AuthenticationRequest: Sendable, Hashable {
  /// The operation that the app wants to do.
  package let operation: AccessOperation
  /// What the item's creator asked to be shown first.
  package let requirement: AccessRequirement
  /// The sentence that the app wants to be shown.
  package let prompt: String?

  /// Creates a request, as a keychain call makes one for the device's person.
  package init(operation: AccessOperation, requirement: AccessRequirement, prompt: String? = nil) {
    self.operation = operation
    self.requirement = requirement
    self.prompt = prompt
  }
}

/// What an app brings along as `u_AuthCtx`: the stand-in for an `LAContext`.
package struct AuthenticationContext: Sendable, Equatable {
  /// False where the app forbids any dialog (`interactionNotAllowed`).
  package var isInteractionAllowed: Bool
  /// What the person has answered to this context before; `nil` if the device is asked.
  package var outcome: AuthenticationOutcome?
  /// The credential of items with an application password.
  package var applicationPassword: SensitiveBytes?
  /// The sentence to be shown; that of the query comes first.
  package var prompt: String?

  /// Creates a context; by default it allows a dialog and brings nothing.
  package init(
    isInteractionAllowed: Bool = true, outcome: AuthenticationOutcome? = nil,
    applicationPassword: SensitiveBytes? = nil, prompt: String? = nil
  ) {
    self.isInteractionAllowed = isInteractionAllowed
    self.outcome = outcome
    self.applicationPassword = applicationPassword
    self.prompt = prompt
  }

  package static func == (left: AuthenticationContext, right: AuthenticationContext) -> Bool {
    let samePassword =
      switch (left.applicationPassword, right.applicationPassword) {
      case (nil, nil): true
      case (let left?, let right?): left.constantTimeEquals(right)
      default: false
      }
    return samePassword && left.isInteractionAllowed == right.isInteractionAllowed && left.outcome == right.outcome
      && left.prompt == right.prompt
  }
}
