import KeyhaulKit
import Reports

/// Creates errors for a backup whose items could not be changed.
enum ItemEditErrorText {
  /// Returns the error to show.
  ///
  /// - Parameters:
  ///   - error: The library's error.
  ///   - name: The backup's name.
  ///   - hasPassword: Whether the backup has a password. Without a password, all class keys are bound to the source
  ///     device.
  static func commandError(for error: ItemEditError, name: String, hasPassword: Bool) -> CommandError {
    let status = CommandExitStatus(error.category)
    let findCommand = "keyhaul item find \(ShellQuoting.quote(name))"
    switch error.code {
    case .duplicate:
      return CommandError(
        status, "\(name) already has this item", why: "\(error.reason); nothing was changed",
        try: "other attributes; \"\(findCommand)\" shows the existing item")
    case .neverInBackup(let reason):
      return CommandError(
        status, "no backup contains such an item",
        why: "\(reason.explanation.headline) (\(reason.rawValue)); nothing was changed",
        try: "another --protection, or keyhaul explain \(reason.rawValue)")
    case .classKeyMissing:
      return CommandError(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: hasPassword
          ? "--device-key-file PATH, or a --protection without -this-device"
          : "--device-key-file PATH: without a password, all classes of a backup are bound to its device")
    case .classKeyUnusable:
      return CommandError(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: "another --protection, or another copy of the backup")
    case .deviceKeyUnproven:
      return CommandError(
        status, "the item cannot be encrypted for \(name)", why: "\(error.reason); nothing was changed",
        try: "a --protection without -this-device, in a backup with a password")
    case .notAnItem:
      return CommandError(
        status, "the keychain does not accept this item", why: error.reason, try: "keyhaul item add --help")
    case .unknownContent, .failed:
      return CommandError(
        status, "cannot change \(name)", why: "\(error.reason); nothing was changed", try: error.advice)
    }
  }
}
