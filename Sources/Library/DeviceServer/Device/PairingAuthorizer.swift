import Basics

/// The policy for computers that request to pair with a served device.
package enum TrustPolicy: Sendable {
  /// Trust every computer that asks.
  case always
  /// Trust only the first computer that asks while the server runs.
  case once
  /// Ask the user each time. The closure shows the question and returns immediately; the answer is passed to
  /// `PairingAuthorizer.answer`.
  case ask(@Sendable (_ authorizer: PairingAuthorizer) -> Void)
}

/// Decides about the requests to pair with one device.
package final class PairingAuthorizer: Sendable {
  /// The result for one request.
  package enum Decision: Sendable, Hashable { case granted, pending, refused }

  private enum State {
    case idle
    case waitingForUser
    case granted(until: ContinuousClock.Instant)
    case refused
  }

  /// The device's name, for the question.
  package let device: String
  private let policy: TrustPolicy
  private let state = Locked(State.idle)

  /// The time within which the client has to ask again after the user's consent.
  private static let consentLifetime = Duration.seconds(120)

  package init(device: String, _ policy: TrustPolicy) { (self.device, self.policy) = (device, policy) }

  /// Decides about a request. The user's answer counts for one request only.
  package func decide() -> Decision {
    switch policy {
    case .always: return .granted
    case .once:
      return state.withLock { state in
        guard case .idle = state else { return .refused }
        state = .refused
        return .granted
      }
    case .ask(let ask): return decide(asking: ask)
    }
  }

  /// Uses the user's answer to an earlier request, or asks the user. After the user has answered, the client has to repeat
  /// its request.
  private func decide(asking ask: (PairingAuthorizer) -> Void) -> Decision {
    let (decision, isNewQuestion) = state.withLock { state -> (decision: Decision, isNewQuestion: Bool) in
      switch state {
      case .waitingForUser: return (.pending, false)
      case .granted(let end) where ContinuousClock.now < end:
        state = .idle
        return (.granted, false)
      case .refused:
        state = .idle
        return (.refused, false)
      case .idle, .granted:
        state = .waitingForUser
        return (.pending, true)
      }
    }
    if isNewQuestion { ask(self) }
    return decision
  }

  /// Stores the user's answer for the next request.
  package func answer(isTrusted: Bool) {
    let end = ContinuousClock.now.advanced(by: Self.consentLifetime)
    state.withLock { $0 = isTrusted ? .granted(until: end) : .refused }
  }
}
