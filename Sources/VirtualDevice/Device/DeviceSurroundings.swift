import Synchronization

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
