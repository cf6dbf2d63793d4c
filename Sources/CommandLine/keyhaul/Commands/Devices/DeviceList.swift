import ArgumentParser
import KeyhaulKit

/// `keyhaul device list`: lists the devices in the device folder.
struct DeviceList: TabularCommand {
  static let helpScreen = HelpScreen(
    sentence: "List the virtual devices",
    usage: "keyhaul device list",
    examples: ["keyhaul device list", "keyhaul device list --fields name,items"],
    flags: ["--fields", "--json", "--home"])
  static let configuration = makeConfiguration(named: "list")

  /// The members of each element of `devices` in `device-list/1`.
  static let table = FieldTable(
    rows: "devices",
    fields: [
      "name", "udid", "product_type", "product_version", "state", "passcode_set", "items", "revision", "last_backup",
      "failed_attempts", "erase_after_failures", "published_hardware_key",
    ])

  @OptionGroup var fieldOptions: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    session.chosenFields = try ChosenFields(fieldOptions, of: Self.table)
    let home = try DeviceSet(of: session)
    home.clearLeftovers()
    let (devices, unreadable) = try session.devices(in: home)
    var reports: [DeviceReport] = []
    var broken: [(name: String, error: CommandError)] = unreadable.map { ($0, Self.unreadable($0)) }
    for device in devices {
      do throws(KeyhaulError) {
        let summary = try device.summary(verb: session.commandName, knownSeeds: WellKnownSeeds.all)
        reports.append(DeviceReport(summary, of: device))
      } catch {
        // Deleted by another process since the folder was read.
        if error.code == .deviceNotFound { continue }
        broken.append((device.name.text, CommandError(error, device: device.name.text)))
      }
    }
    if session.isJSON {
      try session.writeDocument([
        "format": "device-list/1", "devices": .array(reports.map { .object($0.fields) }),
        "unreadable": .array(
          broken.map {
            ["name": .string($0.name), "message": .string($0.error.message), "why": .text($0.error.why)]
          }),
      ])
    } else if reports.isEmpty, broken.isEmpty {
      session.info("There are no devices in \(UntrustedText.escaped(home.path)) (keyhaul device create NAME).")
    } else {
      try session.print(table(reports, broken: broken.map(\.name)))
    }
    for (_, error) in broken {
      session.warn(error.message, why: error.why, try: error.advice, of: error.errno)
    }
    return broken.isEmpty ? .ok : .partial
  }

  private static func unreadable(_ name: String) -> CommandError {
    CommandError(
      .partial, "\"\(UntrustedText.shortened(name, columns: 60))\" cannot be a device's name, and was skipped",
      why: "it contains invalid UTF-8 or the replacement character U+FFFD; Keyhaul never gives a device such a name",
      try: "rename its folder with mv if it is a device")
  }

  private func table(_ reports: [DeviceReport], broken: [String]) -> Table {
    var table = Table([
      .init("NAME", flexible: true), .init("STATE"), .init("PASSCODE"), .init("ITEMS", rightAligned: true),
      .init("LAST BACKUP"),
    ])
    let rows = reports.map(\.cells) + broken.map { [$0, "cannot be read", "–", "–", "–"] }
    for row in rows.sorted(by: { ($0.first ?? "") < ($1.first ?? "") }) { table.add(row) }
    return table
  }
}

extension Session {
  fileprivate func devices(in home: DeviceSet) throws(CommandError) -> ([VirtualDevice], unreadable: [String]) {
    do throws(KeyhaulError) {
      return (try home.devices(), try home.unreadableNames())
    } catch {
      throw CommandError(error, doing: "cannot list \(home.path)")
    }
  }
}

/// `keyhaul device show`: shows a device and its state.
struct DeviceShow: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Show a virtual device",
    usage: "keyhaul device show NAME",
    examples: ["keyhaul device show old-phone", "keyhaul device show old-phone --json"],
    flags: ["--json"])
  static let configuration = makeConfiguration(named: "show")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let report = try device.withSession(.reading) { try DeviceReport($0) }
    if session.isJSON {
      try session.writeDocument(report.document())
      return .ok
    }
    let widest = report.lines.map { DisplayWidth.columns(of: $0.0) }.max() ?? 0
    for (label, text) in report.lines {
      let label = DisplayWidth.padded(label, columns: widest) + "  "
      for line in WordWrap.labeled(label, UntrustedText.escaped(text), columns: session.resultStyle.width) {
        try session.print(line)
      }
    }
    return .ok
  }
}
