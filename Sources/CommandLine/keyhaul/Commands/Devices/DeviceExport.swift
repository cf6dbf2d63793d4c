import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul device export`: writes the items of a device as a Simulator's keychain.
struct DeviceExport: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Write a device's items as the keychain of a Simulator",
    usage: "keyhaul device export NAME -o FILE",
    examples: ["keyhaul device export old-phone -o keychain-2-debug.db"],
    flags: ["--output", "--yes", "--json"])
  static let configuration = makeConfiguration(named: "export")

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "The file to write, with mode 0600. It contains the whole keychain, unencrypted.", valueName: "file"),
    completion: .file())
  var output: String
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    if output == "-" {
      throw CommandError.usage(
        "the database must be written to a file", why: "it contains the whole keychain unencrypted", try: "-o FILE")
    }
    let device = try target.find(in: session)
    try session.prepareOutput(output, inputs: device.files)
    let rows = try device.withSession(.reading) { openDevice in
      let rows = try openDevice.keychain.rows(includingTombstones: true, keys: openDevice.classKeys)
      // A temporary fault, such as that of a locked device, ends the export. Rows with a permanent fault are left out.
      if rows.contains(where: { $0.fault?.isPermanent == false }) { throw ItemError.unreadable(on: openDevice) }
      return rows
    }
    let items = rows.compactMap(\.item)
    try write(items, of: device.name, in: session)
    let tombstoneCount = items.count { $0.isTombstone }
    var counts = [HumanReadable.count(items.count - tombstoneCount, "item")]
    if tombstoneCount > 0 { counts.append(ItemText.tombstones(tombstoneCount)) }
    try session.announce(
      "Wrote \(HumanReadable.list(counts)) from \(device.name) to \(output), a Simulator keychain for iOS 18 or later. "
        + "The secrets in it are not encrypted.")
    if session.isJSON {
      try session.writeDocument([
        "format": "device-export/1", "device": .string(device.name), "output": .string(output),
        "items": .count(items.count), "unreadable": .count(rows.count - items.count),
        "schema": .string(SimulatorSchema.newest.text),
      ])
    }
    guard rows.count > items.count else { return .ok }
    session.warn(
      "left out \(HumanReadable.count(rows.count - items.count, "item")) of \(device.name) that cannot be read",
      try: "keyhaul item find \(ShellQuoting.quote(device.name))")
    return .partial
  }

  private func write(_ items: [KeychainItem], of name: String, in session: Session) throws {
    let keychain: SimulatorKeychain
    do throws(KeyhaulError) {
      keychain = try SimulatorKeychain(creatingTables: KeychainStore.tableStatements)
      for item in items { _ = try keychain.insert(item, replacingExisting: false) }
    } catch {
      throw CommandError(
        CommandExitStatus(error.category), "cannot write \(name) as a database", why: error.reason, of: error.errno)
    }
    try session.committing(CommittedChange("\(name) was written as \(output)", at: output)) { () throws(CommandError) in
      // `nil` if SQLite does not return the database's bytes.
      let written: Void? = try keychain.committed { (bytes) throws(CommandError) in
        try OutputFile.write(bytes, to: output)
      }
      guard written != nil else {
        throw CommandError(.failed, "cannot write \(name) as a database", why: "SQLite did not return its bytes")
      }
    }
  }
}
