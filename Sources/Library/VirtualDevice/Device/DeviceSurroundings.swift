import Basics

/// Who is around the devices of one environment, by the directory of each: all sessions of a device share them.
final class DeviceSurroundings: Sendable {
  private struct Entry {
    let monitor = ProtectedDataMonitor()
    let person = AuthenticationResponder()
  }

  private let entries = Locked<[String: Entry]>([:])

  func monitor(of directory: String) -> ProtectedDataMonitor { entry(of: directory).monitor }
  func person(at directory: String) -> AuthenticationResponder { entry(of: directory).person }

  private func entry(of directory: String) -> Entry {
    entries.withLock { entries in
      if let entry = entries[directory] { return entry }
      let entry = Entry()
      entries[directory] = entry
      return entry
    }
  }
}

extension VirtualDevice {
  /// Tells of the device's locks and unlocks.
  public var protectedData: ProtectedDataMonitor { environment.surroundings.monitor(of: directory) }
  /// Who answers when an item asks for a person.
  public var person: AuthenticationResponder { environment.surroundings.person(at: directory) }
}
