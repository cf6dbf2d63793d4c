import ArgumentParser

/// `keyhaul simulator …`: keychains of Simulators, which can be changed without a Mac.
struct SimulatorGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "simulator", abstract: "Fill, save, restore and reset the keychain of a Simulator",
    usage: "keyhaul simulator <command> [arguments]",
    discussion: "Keyhaul has never been tested with a real Simulator. Take a snapshot before you change one.",
    subcommands: [
      SimulatorList.self, SimulatorSeed.self, SimulatorSnapshot.self, SimulatorRestore.self, SimulatorReset.self,
    ],
    helpNames: .long)
}
