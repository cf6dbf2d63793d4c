import ArgumentParser

/// What a restore does with the items that are on the target already.
enum ExistingItems: String, CaseIterable, ExpressibleByArgument {
  /// Removes them first, as iOS does.
  case replace
  /// Keeps them; where both have an item, the newer one wins.
  case merge
}

/// What `plan` and `restore` have in common: the two must decide alike.
struct MoveOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The device to restore to.", valueName: "device"), completion: .deviceNames)
  var to: String

  @Option(
    help: ArgumentHelp("Items already there: replace, as iOS does, or merge (default replace).", valueName: "policy"))
  var existing: ExistingItems?
}
