import Basics

extension ShellQuoting {
  /// A device by the name that a backup or a plan has for it, which anybody may have written: `DEVICE` for one that no
  /// virtual device can have.
  package static func device(named name: String?) -> String {
    name.flatMap { try? DeviceName($0) }?.text ?? "DEVICE"
  }
}
