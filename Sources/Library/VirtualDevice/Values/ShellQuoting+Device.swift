import Basics

extension ShellQuoting {
  /// Returns a device's name for a suggested command, or `DEVICE` if no virtual device can have the name. A name in a
  /// backup or plan is untrusted.
  package static func device(named name: String?) -> String {
    name.flatMap { try? DeviceName($0) }?.text ?? "DEVICE"
  }
}
