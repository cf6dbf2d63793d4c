import ArgumentParser
import KeyhaulKit

/// `keyhaul device fixture`: prints a description that comes with the program, to read it or to write one's own after it.
struct DeviceFixtureVerb: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Print a device description that comes with the program",
    usage: "keyhaul device fixture NAME",
    examples: [
      "keyhaul device fixture old-phone", "keyhaul device fixture every-rule > my-phone.json",
    ],
    flags: ["--json"])
  static let configuration = described(as: "fixture")

  @Argument(
    help: ArgumentHelp("\(FixtureSource.bundledNames).", valueName: "name"),
    completion: .list(BundledFixtures.names))
  var name: String
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    guard let bytes = BundledFixtures.bytes(named: name) else {
      let near = EditDistance.nearest(to: name, among: BundledFixtures.names)
      throw CommandFailure(
        .notFound, "no description named \(HostileText.shown(name)) comes with the program",
        why: near.map { "\"\($0)\" is similar" } ?? "there are \(Amounts.list(BundledFixtures.names))",
        try: near.map { "keyhaul device fixture \($0)" })
    }
    try session.writeRaw(bytes)
    return .ok
  }
}
