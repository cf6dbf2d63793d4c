import ArgumentParser

/// `keyhaul simulator …`: keychains of Simulators, which need no Mac here and no secret.
struct SimulatorGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "simulator", abstract: "Fill, save and reset the keychain of a Simulator",
    usage: "keyhaul simulator <command> [arguments]",
    subcommands: [SimulatorList.self, SimulatorSeed.self, SimulatorSnapshot.self, SimulatorReset.self],
    helpNames: .long)
}

/// What every verb that changes one says on its page.
enum SimulatorNote {
  static let untried =
    "Shut down the Simulator and take a snapshot first: Keyhaul has never been tested with a real Simulator."
}
