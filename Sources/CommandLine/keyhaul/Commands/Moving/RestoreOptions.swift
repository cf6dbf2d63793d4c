public import ArgumentParser
import KeyhaulKit

extension ExistingItemPolicy: ExpressibleByArgument {}

/// What a restore does with the items that are on the target already.
struct ExistingItemOptions: ParsableArguments {
  @Option(
    name: .customLong("existing"),
    help: ArgumentHelp("Items already there: replace, as iOS does, or merge; replace by default.", valueName: "policy"))
  var given: ExistingItemPolicy?

  var policy: ExistingItemPolicy { given ?? .replace }
}

/// What `plan` and `restore` have in common: the two must decide alike.
struct MoveOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The device to restore to. plan answers without one, for a new device and for the same one, erased; its views "
        + "and --expect are about the new one then, and --existing is refused.",
      valueName: "device"),
    completion: .deviceNames)
  var to: String?

  /// The device of a verb that has to have one.
  func target(of archive: String) throws(CommandFailure) -> String {
    if let to { return to }
    let isStream = archive == "-"
    throw .usage(
      "the command does not name the target device", why: "--to is missing",
      try: "--to DEVICE"
        + (isStream ? "" : "; keyhaul plan \(ShellWord.quoted(archive)) shows, without a target, what would be lost"))
  }

  @OptionGroup var existing: ExistingItemOptions

  var policy: ExistingItemPolicy { existing.policy }
}
