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
    let deviceSet = try DeviceSet(of: session)
    deviceSet.clearLeftovers()
    let (reports, faults) = try Self.reports(on: deviceSet, in: session)
    if session.isJSON {
      try session.writeDocument([
        "format": "device-list/1", "devices": .array(reports.map { .object($0.fields) }),
        "unreadable": .array(
          faults.map {
            ["name": .string($0.name), "message": .string($0.error.message), "why": .text($0.error.why)]
          }),
      ])
    } else if reports.isEmpty, faults.isEmpty {
      session.info("There are no devices in \(UntrustedText.escaped(deviceSet.path)) (keyhaul device create NAME).")
    } else {
      try session.print(table(reports, unreadableNames: faults.map(\.name)))
    }
    for (_, error) in faults {
      session.warn(error.message, why: error.why, try: error.advice, of: error.errno)
    }
    return faults.isEmpty ? .ok : .partial
  }

  /// Reads all devices in a folder.
  ///
  /// - Returns: The reports on the readable devices, and the name and the error of each device that cannot be read.
  private static func reports(
    on deviceSet: DeviceSet, in session: Session
  ) throws(CommandError) -> (reports: [DeviceReport], faults: [(name: String, error: CommandError)]) {
    let (devices, invalidNames) = try session.devices(in: deviceSet)
    var reports: [DeviceReport] = []
    var faults: [(name: String, error: CommandError)] = invalidNames.map { ($0, invalidNameError($0)) }
    for device in devices {
      do throws(KeyhaulError) {
        let summary = try device.summary(command: session.commandName, knownSeeds: WellKnownSeeds.all)
        reports.append(DeviceReport(summary, of: device))
      } catch {
        // Another process deleted the device after the folder was read.
        if error.code == .deviceNotFound { continue }
        faults.append((device.name.text, CommandError(error, device: device.name.text)))
      }
    }
    return (reports, faults)
  }

  private static func invalidNameError(_ name: String) -> CommandError {
    CommandError(
      .partial, "\"\(UntrustedText.shortened(name, columns: 60))\" cannot be a device's name, and was skipped",
      why: "it contains invalid UTF-8 or the replacement character U+FFFD; Keyhaul never gives a device such a name",
      try: "rename its folder with mv if it is a device")
  }

  private func table(_ reports: [DeviceReport], unreadableNames: [String]) -> Table {
    var table = Table([
      .init("NAME", flexible: true), .init("STATE"), .init("PASSCODE"), .init("ITEMS", rightAligned: true),
      .init("LAST BACKUP"),
    ])
    let rows = reports.map(\.cells) + unreadableNames.map { [$0, "cannot be read", "–", "–", "–"] }
    for row in rows.sorted(by: { ($0.first ?? "") < ($1.first ?? "") }) { table.add(row) }
    return table
  }
}

extension Session {
  /// Returns the devices in a device folder, and the names of subfolders that cannot be a device's name.
  fileprivate func devices(
    in deviceSet: DeviceSet
  ) throws(CommandError) -> (devices: [VirtualDevice], invalidNames: [String]) {
    do throws(KeyhaulError) {
      return (try deviceSet.devices(), try deviceSet.unreadableNames())
    } catch {
      throw CommandError(error, failedAction: "cannot list \(deviceSet.path)")
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
    let widest = report.lines.map { DisplayWidth.columns(of: $0.label) }.max() ?? 0
    for (label, text) in report.lines {
      let paddedLabel = DisplayWidth.padded(label, columns: widest) + "  "
      for line in WordWrap.labeled(paddedLabel, UntrustedText.escaped(text), columns: session.resultStyle.width) {
        try session.print(line)
      }
    }
    return .ok
  }
}
