import ArgumentParser
import KeyhaulKit

/// The device that a command works on.
struct TargetDevice: ParsableArguments {
  @Argument(help: "The device.", completion: .deviceNames) var device: String

  init() {}
}

/// The dry-run option of commands that write.
struct DryRunOptions: ParsableArguments {
  @Flag(name: [.customShort("n"), .customLong("dry-run")], help: "Show what would be done, without doing it.")
  var isOn = false

  init() {}
}
