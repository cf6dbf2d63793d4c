public import ArgumentParser
public import Migration

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
  @Option(help: ArgumentHelp("The device to restore to.", valueName: "device"), completion: .deviceNames)
  var to: String

  @OptionGroup var existing: ExistingItemOptions

  var policy: ExistingItemPolicy { existing.policy }
}
