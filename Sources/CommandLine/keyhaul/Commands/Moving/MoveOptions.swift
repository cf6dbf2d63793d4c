public import ArgumentParser
import KeyhaulKit

extension ExistingItemPolicy: ExpressibleByArgument {}

/// The option for the target's existing items.
struct ExistingItemOptions: ParsableArguments {
  @Option(
    name: .customLong("existing"),
    help: ArgumentHelp(
      "What to do with items that the device already has: replace (the default, as in iOS) or "
        + "merge.", valueName: "policy"))
  var chosenPolicy: ExistingItemPolicy?

  var policy: ExistingItemPolicy { chosenPolicy ?? .replace }
}

/// The options that `plan` and `restore` share, so that both make the same decisions.
struct MoveOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The device to restore to. Without it, plan shows the results for a new device and the erased source device. "
        + "The plan's views and --expect then apply to the new device, and --existing is not allowed.",
      valueName: "device"),
    completion: .deviceNames)
  var to: String?

  /// Returns the device of `--to`, for a command that requires it.
  func target(of archive: String) throws(CommandError) -> String {
    if let to { return to }
    let isStream = archive == "-"
    throw .usage(
      "no target device was given", why: "--to is missing",
      try: "--to DEVICE"
        + (isStream
          ? ""
          : ". To see what you would lose before you choose a device: keyhaul plan "
            + "\(ShellQuoting.quote(archive))"))
  }

  @OptionGroup var existing: ExistingItemOptions

  var policy: ExistingItemPolicy { existing.policy }
}
