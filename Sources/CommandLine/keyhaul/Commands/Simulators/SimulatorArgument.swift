import ArgumentParser
import KeyhaulKit

/// The argument that names a Simulator.
struct SimulatorArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The Simulator: its name, its UDID, booted, its folder, or its keychain.",
      discussion: "Keyhaul looks for names in ~/Library/Developer/CoreSimulator/Devices."),
    completion: .simulators)
  var simulator: String

  init() {}

  init(path: String) { simulator = path }

  /// Finds the Simulator and reads its keychain.
  ///
  /// - Throws: `.notFound` if no Simulator has the name; `.usage` if several Simulators have it; `.refused` if there is no
  ///   keychain database at the path.
  func find(in session: Session) throws(CommandError) -> ResolvedSimulator {
    let path = try path(session.environment)
    guard case .dump(let database) = try SourceResolver(session).backupOrDump(path), database.isDatabase else {
      throw CommandError(
        .refused, "\(path) is not a Simulator's keychain",
        why: "there is no keychain-2-debug.db or keychain-2.db at this path or in its data/Library/Keychains",
        try: "keyhaul simulator list")
    }
    return try ResolvedSimulator(database)
  }

  /// Returns the folder of the Simulator with this name, or the argument itself if it is a path.
  private func path(_ environment: [String: String]) throws(CommandError) -> String {
    guard !simulator.contains("/"), PathContent(of: simulator) == .absent else { return simulator }
    let directory = InstalledSimulator.standardDirectory(environment)
    let installed = InstalledSimulator.all(in: directory)
    let matches = installed.filter { $0.isNamed(by: simulator) }
    if matches.count > 1 {
      let names = matches.map { "\($0.udid)\($0.runtime.map { " (\(UntrustedText.escaped($0)))" } ?? "")" }
      throw .usage(
        "\(simulator) could mean several Simulators", why: "there are \(HumanReadable.list(names))",
        try: "the UDID, such as \(ShellQuoting.quote(matches[0].udid))")
    }
    if let match = matches.first { return match.path }
    guard !installed.isEmpty else { return simulator }
    let names = installed.flatMap { [$0.udid, $0.name].compactMap(\.self) }
    let similarName = EditDistance.nearest(to: simulator, among: names)
    throw CommandError(
      .notFound, simulator == "booted" ? "no Simulator is booted" : "there is no Simulator named \(simulator)",
      why: "\(directory) has \(HumanReadable.count(installed.count, "other Simulator"))",
      try: similarName.map { ShellQuoting.quote($0) } ?? "keyhaul simulator list")
  }
}
