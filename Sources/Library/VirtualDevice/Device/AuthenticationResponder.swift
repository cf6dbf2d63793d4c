import Basics

/// A simulated user of a device, who gives the same answer to every authentication dialog. Records all requests.
package final class AuthenticationResponder: Sendable {
  private struct State {
    var answer: AuthenticationOutcome
    var requests: [AuthenticationRequest] = []
  }

  private let state: Locked<State>

  /// Creates a user with one answer.
  ///
  /// - Parameter answer: The answer to every dialog. By default, no user is present.
  package init(answer: AuthenticationOutcome = .unavailable) { state = Locked(State(answer: answer)) }

  /// The answer to all following dialogs.
  package var answer: AuthenticationOutcome {
    get { state.withLock { $0.answer } }
    set { state.withLock { $0.answer = newValue } }
  }

  /// All requests, the oldest first.
  package var requests: [AuthenticationRequest] { state.withLock { $0.requests } }

  /// Records a request and returns the answer.
  func respond(to request: AuthenticationRequest) -> AuthenticationOutcome {
    state.withLock { state in
      state.requests.append(request)
      return state.answer
    }
  }
}
