import ArgumentParser
import CommandSession

/// `keyhaul item …`
struct ItemGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "item", abstract: "Add, find, change and delete the items of a device",
    usage: "keyhaul item <verb> DEVICE [attributes]",
    subcommands: [ItemAdd.self, ItemFind.self, ItemUpdate.self, ItemDelete.self],
    helpNames: .long)
}
