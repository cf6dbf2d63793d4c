package import Basics
package import KeychainFormats

/// The user's reaction to an authentication request.
public enum AuthenticationOutcome: String, Sendable, CaseIterable {
  /// Authenticates.
  case allow
  /// Presents a wrong finger, face or passcode until the system gives up.
  case deny
  /// Dismisses the dialog.
  case cancel
  /// No user is present, or the dialog cannot be shown.
  case unavailable = "none"

  /// The error of the call; `nil` if it continues.
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

/// A request for the user's authentication.
package struct AuthenticationRequest: Sendable, Hashable {
  /// The operation that requires the authentication.
  package let operation: AccessOperation
  /// The required authentication.
  package let requirement: AccessRequirement
  /// The app's text for the dialog.
  package let prompt: String?

  /// Creates a request.
  package init(operation: AccessOperation, requirement: AccessRequirement, prompt: String? = nil) {
    self.operation = operation
    self.requirement = requirement
    self.prompt = prompt
  }
}

/// The authentication context that an app passes as `u_AuthCtx`, in place of an `LAContext`.
package struct AuthenticationContext: Sendable, Equatable {
  /// Whether dialogs are allowed. An app can forbid them (`interactionNotAllowed`).
  package var isInteractionAllowed: Bool
  /// The user's earlier reaction for this context; `nil` if the user has to be asked.
  package var outcome: AuthenticationOutcome?
  /// The password for items with an application password.
  package var applicationPassword: SensitiveBytes?
  /// The app's text for the dialog. A text in the query takes precedence.
  package var prompt: String?

  /// Creates a context. By default it allows dialogs and contains no credentials.
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
