import KeyhaulKit
import Reports

/// Why the items of a backup could not be changed, with what to type.
enum ItemEditFailure {
  /// - Parameter hasPassword: Of the backup; without one the keys of all its classes are bound to its device.
  static func of(_ error: ItemEditError, name: String, hasPassword: Bool) -> CommandFailure {
    let status = CommandStatus(error.category)
    let list = "keyhaul item find \(ShellWord.quoted(name))"
    switch error.code {
    case .duplicate:
      return CommandFailure(
        status, "\(name) already has this item", why: "\(error.reason); nothing was changed",
        try: "other attributes; \"\(list)\" shows the existing item")
    case .neverInBackup(let reason):
      return CommandFailure(
        status, "no backup contains such an item",
        why: "\(reason.explanation.headline) (\(reason.rawValue)); nothing was changed",
        try: "another --protection, or keyhaul explain \(reason.rawValue)")
    case .classKeyMissing:
      return CommandFailure(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: hasPassword
          ? "--device-key-file PATH, or a --protection without -this-device"
          : "--device-key-file PATH: every class of a backup without a password is bound to its device")
    case .hardwareUnproven:
      return CommandFailure(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: "a --protection without -this-device, in a backup with a password")
    case .notAnItem:
      return CommandFailure(
        status, "the keychain does not accept this", why: error.reason, try: "keyhaul item add --help")
    case .unknownContent, .failed:
      return CommandFailure(
        status, "cannot change \(name)", why: "\(error.reason); nothing was changed", try: error.advice)
    }
  }
}
