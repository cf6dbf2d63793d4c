import ArgumentParser
import KeyhaulKit

/// The root command. It lists only commands that can run.
struct Keyhaul: ParsableCommand {
  static let version = ProgramVersion.number
  static let tagline = "Back up, inspect, move and restore iOS keychains"

  static let configuration = CommandConfiguration(
    commandName: "keyhaul",
    abstract: tagline,
    usage: "keyhaul <command> [arguments] [flags]",
    discussion: discussion,
    version: version,
    groupedSubcommands: [
      CommandGroup(name: "Devices", subcommands: [DeviceGroup.self]),
      CommandGroup(name: "Items", subcommands: [ItemGroup.self]),
      CommandGroup(
        name: "Archives",
        subcommands: [
          BackupCommand.self, Inspect.self, Verify.self, Diff.self, Export.self, Rekey.self, Convert.self, Seal.self,
        ]),
      CommandGroup(name: "Simulator", subcommands: [SimulatorGroup.self]),
      CommandGroup(name: "Moving", subcommands: [PlanCommand.self, Restore.self, Why.self]),
      CommandGroup(name: "About", subcommands: [Demo.self, Explain.self, Completions.self, Version.self]),
    ],
    helpNames: .long)

  private static let discussion = """
    Flags may come before or after the command. Passwords are never arguments: they come from a file, a descriptor, a \
    command, or a prompt on the terminal.

    Exit codes: 0 done, 1 failed, 2 differs, 3 partly done, 4 no match, 5 done but a later step failed, \
    10 not found, 11 busy, 12 wrong password, 13 damaged, 14 refused, 15 locked, 16 stale plan, 64 wrong arguments. "keyhaul explain CODE" says more.

    Environment: KEYHAUL_HOME, KEYHAUL_PASSWORD_FILE, KEYHAUL_PASSWORD_COMMAND, NO_COLOR, COLUMNS.
    """

  /// Returns the short help of the root command, with the list of commands.
  static func shortHelp(style: TextStyle) -> [String] {
    var lines = [style.painted(tagline + ".", .bold), "", "usage     keyhaul <command> [arguments] [flags]"]
    lines += [
      "examples  keyhaul demo", "          keyhaul backup old-phone -o family.backup",
      "          keyhaul plan family.backup", "",
    ]
    lines += configuration.groupedSubcommands.flatMap { commandLines(of: $0, style: style) }
    lines += [
      "  flags     --home DIR  --json  -q  -v  --color WHEN  --no-input  -y  --version", "",
      "\"keyhaul <command> -h\" describes a command; \"keyhaul --help\" lists everything.",
    ]
    return lines.map(style.adapted)
  }

  private static func commandLines(of group: CommandGroup, style: TextStyle) -> [String] {
    let names = group.subcommands.map { command in
      let subcommands = command.configuration.subcommands.map { $0.commandName }
      return subcommands.isEmpty
        ? command.commandName : "\(command.commandName) \(subcommands.joined(separator: "|"))"
    }
    let label = "  " + DisplayWidth.padded(group.name.lowercased(), columns: 10)
    return WordWrap.labeled(label, names.joined(separator: ", "), columns: style.width)
  }
}

extension Keyhaul {
  /// Suggestions for words that are not commands of this program.
  static let suggestions = CommandPath.Suggestions(synonyms: synonyms, commandForFiles: "inspect")

  /// Names that other programs use for a command, and words that users might try.
  private static let synonyms = [
    "add": "item add", "check": "verify", "compare": "diff", "contents": "inspect", "copy": "convert",
    "create": "device create", "decrypt": "export", "devices": "device list", "dump": "export", "erase": "device erase",
    "extract": "export", "find": "item find", "get": "item find", "info": "inspect", "list": "inspect",
    "ls": "inspect", "migrate": "restore", "open": "inspect", "pack": "convert", "passwd": "rekey",
    "password": "rekey", "passwords": "export", "predict": "plan", "read": "inspect", "save": "backup",
    "search": "item find", "show": "inspect", "simulate": "plan", "tree": "inspect", "unpack": "convert",
  ]
}

/// `keyhaul device`: groups the commands for virtual devices.
struct DeviceGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Create and manage virtual devices", usage: "keyhaul device <command> [arguments]",
    subcommands: [
      DeviceCreate.self, DeviceList.self, DeviceShow.self, DeviceLock.self, DeviceUnlock.self, DeviceRestart.self,
      DevicePasscodeGroup.self, DeviceErase.self, DeviceDelete.self, DeviceExport.self, DeviceServe.self,
      DeviceFixtureCommand.self,
    ],
    helpNames: .long)
}

/// `keyhaul device passcode`: groups the commands for a device's passcode.
struct DevicePasscodeGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "passcode", abstract: "Set, change or remove a device's passcode",
    usage: "keyhaul device passcode <command> NAME",
    subcommands: [DevicePasscodeSet.self, DevicePasscodeChange.self, DevicePasscodeRemove.self],
    helpNames: .long)
}

/// `keyhaul item`: groups the commands for items.
struct ItemGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "item", abstract: "Add, find, change and delete items",
    usage: "keyhaul item <command> DEVICE|BACKUP [attributes]",
    subcommands: [ItemAdd.self, ItemFind.self, ItemUpdate.self, ItemDelete.self],
    helpNames: .long)
}

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
