import Basics

/// Plays the person who holds a device: answers every dialog the same way, and remembers what was asked.
package final class AuthenticationResponder: Sendable {
  private struct State {
    var answer: AuthenticationOutcome
    var requests: [AuthenticationRequest] = []
  }

  private let state: Locked<State>

  /// Creates a person who gives one answer until told otherwise.
  ///
  /// - Parameter answer: By default nobody is there.
  package init(answer: AuthenticationOutcome = .unavailable) { state = Locked(State(answer: answer)) }

  /// What the person does from now on.
  package var answer: AuthenticationOutcome {
    get { state.withLock { $0.answer } }
    set { state.withLock { $0.answer = newValue } }
  }

  /// Every dialog there was, the oldest first.
  package var requests: [AuthenticationRequest] { state.withLock { $0.requests } }

  /// Shows a dialog. Passes for one that answers a context before any call needs it.
  func respond(to request: AuthenticationRequest) -> AuthenticationOutcome {
    state.withLock { state in
      state.requests.append(request)
      return state.answer
    }
  }
}
