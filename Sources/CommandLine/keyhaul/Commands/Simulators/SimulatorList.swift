import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul simulator list`: lists the Simulators in a folder that have a keychain.
struct SimulatorList: TabularCommand {
  static let helpScreen = HelpScreen(
    sentence: "List Simulators with a keychain",
    usage: "keyhaul simulator list [DIRECTORY]",
    examples: ["keyhaul simulator list", "keyhaul simulator list ~/Library/Developer/CoreSimulator/Devices"],
    flags: ["--fields", "--json"])
  static let configuration = makeConfiguration(named: "list")

  @Argument(
    help: "The folder of the Simulators (default: ~/Library/Developer/CoreSimulator/Devices).",
    completion: .directory)
  var directory: String?
  /// The members of each element of `simulators` in `simulator-list/1`.
  static let table = FieldTable(
    rows: "simulators",
    fields: [
      "name", "path", "device_name", "runtime", "state", "items", "schema", "fault",
    ])

  @OptionGroup var fieldOptions: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// A Simulator in the list.
  private struct Entry {
    /// The name of the Simulator's folder.
    let name: String
    /// The path of the folder.
    let path: String
    /// The Simulator as its `device.plist` describes it; `nil` if the folder has no readable `device.plist`.
    let installed: InstalledSimulator?
    /// The Simulator's keychain; `nil` if it cannot be read.
    let keychain: ResolvedSimulator?
    /// The reason why the keychain cannot be read; `nil` if it can be read.
    let fault: String?
  }

  func run(in session: Session) throws -> CommandExitStatus {
    session.chosenFields = try ChosenFields(fieldOptions, of: Self.table)
    let directory = directory ?? InstalledSimulator.standardDirectory(session.environment)
    let entries = try Self.entries(in: directory, session)
    if session.isJSON {
      try session.writeDocument([
        "format": "simulator-list/1", "directory": .string(directory),
        "simulators": .array(entries.map(Self.json)),
      ])
    } else if entries.isEmpty {
      session.info("No Simulator in \(UntrustedText.escaped(directory)) has a keychain.")
    } else {
      try session.print(Self.textTable(of: entries))
    }
    return entries.contains { $0.fault != nil } ? .partial : entries.isEmpty ? .noMatch : .ok
  }

  /// Returns the Simulators in a folder that have a keychain, ordered by UDID.
  private static func entries(in directory: String, _ session: Session) throws(CommandError) -> [Entry] {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    } catch {
      throw CommandError(
        .notFound, "there are no Simulators in \(directory)", why: "it is not a directory that can be read",
        try: "keyhaul simulator list DIRECTORY")
    }
    return names.compactMap { name -> Entry? in
      let path = "\(directory)/\(name)"
      guard case .databaseDirectory = PathContent(of: path) else { return nil }
      let installed = InstalledSimulator(folder: path)
      do throws(CommandError) {
        let keychain = try SimulatorArgument(path: path).find(in: session)
        return Entry(name: name, path: path, installed: installed, keychain: keychain, fault: nil)
      } catch {
        return Entry(name: name, path: path, installed: installed, keychain: nil, fault: error.why ?? error.message)
      }
    }
  }

  private static func textTable(of entries: [Entry]) -> Table {
    var table = Table([
      .init("SIMULATOR", flexible: true), .init("RUNTIME"), .init("STATE"), .init("ITEMS", rightAligned: true),
      .init("SCHEMA"),
    ])
    for entry in entries {
      table.add([
        entry.installed?.name ?? entry.name, entry.installed?.runtime ?? "–", entry.installed?.state?.word ?? "–",
        entry.keychain.map { HumanReadable.grouped($0.rows.count) } ?? "–",
        entry.keychain?.database.schema?.text ?? entry.fault ?? "–",
      ])
    }
    return table
  }

  private static func json(_ entry: Entry) -> JSONValue {
    [
      "name": .string(entry.name), "path": .string(entry.path),
      "device_name": .text(entry.installed?.name), "runtime": .text(entry.installed?.runtime),
      "state": .text(entry.installed?.state?.word),
      "items": entry.keychain.map { .count($0.rows.count) } ?? .null,
      "schema": .text(entry.keychain?.database.schema?.text), "fault": .text(entry.fault),
    ]
  }
}
