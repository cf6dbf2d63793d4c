import Basics
import VirtualDevice

extension Phone {
  /// What the person at the phone does when an item asks for them.
  public enum Person: Sendable, Hashable, CaseIterable {
    /// Nobody is there, or the dialog cannot be shown.
    case isAway
    /// Gives what is asked for.
    case allows
    /// Gives a wrong finger, face or passcode until the system gives up.
    case fails
    /// Dismisses the dialog.
    case cancels
  }

  /// The person at the phone, who is away unless a test says otherwise.
  public var person: Person {
    get {
      switch device.person.answer {
      case .unavailable: .isAway
      case .allow: .allows
      case .deny: .fails
      case .cancel: .cancels
      }
    }
    set {
      device.person.answer =
        switch newValue {
        case .isAway: .unavailable
        case .allows: .allow
        case .fails: .deny
        case .cancels: .cancel
        }
    }
  }
}
