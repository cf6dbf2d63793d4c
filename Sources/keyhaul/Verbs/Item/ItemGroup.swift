import ArgumentParser

/// `keyhaul item …`
struct ItemGroup: VerbGroup {
  static let configuration = CommandConfiguration(
    commandName: "item", abstract: "Add and find the items of a device",
    usage: "keyhaul item <verb> DEVICE [attributes]",
    subcommands: [ItemAdd.self, ItemFind.self],
    helpNames: .long)
}
