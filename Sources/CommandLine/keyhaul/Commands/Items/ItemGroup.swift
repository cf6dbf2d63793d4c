import ArgumentParser

/// `keyhaul item …`
struct ItemGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "item", abstract: "Add, find, change and delete items",
    usage: "keyhaul item <command> DEVICE|BACKUP [attributes]",
    subcommands: [ItemAdd.self, ItemFind.self, ItemUpdate.self, ItemDelete.self],
    helpNames: .long)
}
