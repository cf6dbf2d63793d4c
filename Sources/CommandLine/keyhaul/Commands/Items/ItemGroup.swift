import ArgumentParser

/// `keyhaul item`: groups the commands for items.
struct ItemGroup: GroupCommand {
  static let configuration = CommandConfiguration(
    commandName: "item", abstract: "Add, find, change and delete items",
    usage: "keyhaul item <command> DEVICE|BACKUP [attributes]",
    subcommands: [ItemAdd.self, ItemFind.self, ItemUpdate.self, ItemDelete.self],
    helpNames: .long)
}
