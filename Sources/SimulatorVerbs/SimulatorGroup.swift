package import ArgumentParser
import CommandSession

/// `keyhaul simulator …`: keychains of Simulators, which need no Mac here and no secret.
package struct SimulatorGroup: VerbGroup {
  package static let configuration = CommandConfiguration(
    commandName: "simulator", abstract: "Fill, save and reset the keychain of a Simulator",
    usage: "keyhaul simulator <command> [arguments]",
    subcommands: [SimulatorList.self, SimulatorSeed.self, SimulatorSnapshot.self, SimulatorReset.self],
    helpNames: .long)

  package init() {}
}

/// What every verb that changes one says on its page.
package enum SimulatorNote {
  package static let untried =
    "Shut the Simulator down first. This was never tested with a real Simulator, so take a snapshot first."
}
