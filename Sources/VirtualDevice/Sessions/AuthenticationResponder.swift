public import KeychainStore
import Synchronization

/// Plays the person who holds a device: answers every dialog the same way, and remembers what was asked.
public final class AuthenticationResponder: Sendable {
  private struct State {
    var answer: AuthenticationOutcome
    var requests: [AuthenticationRequest] = []
  }

  private let state: Mutex<State>

  /// - Parameter answer: By default nobody is there.
  public init(answer: AuthenticationOutcome = .unavailable) { state = Mutex(State(answer: answer)) }

  /// What the person does from now on.
  public var answer: AuthenticationOutcome {
    get { state.withLock { $0.answer } }
    set { state.withLock { $0.answer = newValue } }
  }

  /// Every dialog there was, the oldest first.
  public var requests: [AuthenticationRequest] { state.withLock { $0.requests } }

  /// Shows a dialog. Passes for one that answers a context before any call needs it.
  public func respond(to request: AuthenticationRequest) -> AuthenticationOutcome {
    state.withLock { state in
      state.requests.append(request)
      return state.answer
    }
  }
}

/// Who is around the devices of one environment, by the folder of each: all sessions of a device share them.
final class DeviceSurroundings: Sendable {
  private struct Entry {
    let monitor = ProtectedDataMonitor()
    let person = AuthenticationResponder()
  }

  private let entries = Mutex<[String: Entry]>([:])

  func monitor(of folder: String) -> ProtectedDataMonitor { entry(of: folder).monitor }
  func person(at folder: String) -> AuthenticationResponder { entry(of: folder).person }

  private func entry(of folder: String) -> Entry {
    entries.withLock { entries in
      if let entry = entries[folder] { return entry }
      let entry = Entry()
      entries[folder] = entry
      return entry
    }
  }
}

extension VirtualDevice {
  /// Tells of the device's locks and unlocks.
  public var protectedData: ProtectedDataMonitor { environment.surroundings.monitor(of: folder) }
  /// Who answers when an item asks for a person.
  public var person: AuthenticationResponder { environment.surroundings.person(at: folder) }
}
