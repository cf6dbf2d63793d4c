import ArgumentParser
import KeyhaulKit

/// `keyhaul device fixture`: prints a bundled device description, as an example for new descriptions.
struct DeviceFixtureCommand: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Print a device description that comes with the program",
    usage: "keyhaul device fixture NAME",
    examples: [
      "keyhaul device fixture old-phone", "keyhaul device fixture every-rule > my-phone.json",
    ],
    flags: ["--json"])
  static let configuration = makeConfiguration(named: "fixture")

  @Argument(
    help: ArgumentHelp("\(FixtureSource.bundledNames).", valueName: "name"),
    completion: .list(BundledFixtures.names))
  var name: String
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    guard let bytes = BundledFixtures.bytes(named: name) else {
      let similarName = EditDistance.nearest(to: name, among: BundledFixtures.names)
      throw CommandError(
        .notFound, "no description named \(UntrustedText.escaped(name)) comes with the program",
        why: similarName.map { "\"\($0)\" is similar" } ?? "there are \(HumanReadable.list(BundledFixtures.names))",
        try: similarName.map { "keyhaul device fixture \($0)" })
    }
    try session.writeRaw(bytes)
    return .ok
  }
}
