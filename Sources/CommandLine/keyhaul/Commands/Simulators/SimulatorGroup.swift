import ArgumentParser

/// `keyhaul simulator`: groups the commands for keychains of Simulators, which work without a Mac.
struct SimulatorGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulator", abstract: "Fill, save, restore and reset the keychain of a Simulator",
    usage: "keyhaul simulator <command> [arguments]",
    discussion: "Keyhaul has never been tested with a real Simulator. Take a snapshot before you change one.",
    subcommands: [
      SimulatorList.self, SimulatorSeed.self, SimulatorSnapshot.self, SimulatorRestore.self, SimulatorReset.self,
    ],
    helpNames: .long)
}
