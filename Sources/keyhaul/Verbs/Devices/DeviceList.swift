import ArgumentParser
import CommandArguments
import CommandSession
import KeychainFormats
import VirtualDevice

/// `keyhaul device list`: the devices of the home directory.
struct DeviceList: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "List the virtual devices",
    usage: "keyhaul device list",
    examples: ["keyhaul device list", "keyhaul device list --json"],
    flags: ["--json", "--home"])
  static let configuration = described(as: "list")

  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let home = try DeviceHome(of: session)
    let devices = try session.devices(in: home)
    var reports: [DeviceReport] = []
    var broken: [(name: String, failure: CommandFailure)] = []
    for device in devices {
      do throws(VirtualDeviceError) {
        let summary = try device.summary(verb: session.verb, knownSeeds: PublishedSeeds.all)
        reports.append(DeviceReport(summary, of: device))
      } catch {
        // Deleted by another process since the directory was read.
        if error.code == .notFound { continue }
        broken.append((device.name.text, CommandFailure(error, device: device.name.text)))
      }
    }
    if session.isJSON {
      try session.answer([
        "format": "device-list/1", "devices": .array(reports.map { .object($0.fields) }),
        "unreadable": .array(
          broken.map {
            ["name": .string($0.name), "message": .string($0.failure.message), "why": .text($0.failure.why)]
          }),
      ])
    } else if reports.isEmpty, broken.isEmpty {
      session.note("There are no devices in \(HostileText.shown(home.path)) (keyhaul device create NAME).")
    } else {
      try session.say(table(reports, broken: broken.map(\.name)))
    }
    for failure in broken.map(\.failure) { session.warn(failure.message, why: failure.why, try: failure.advice) }
    return broken.isEmpty ? .ok : .partial
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
  fileprivate func devices(in home: DeviceHome) throws(CommandFailure) -> [VirtualDevice] {
    do throws(VirtualDeviceError) {
      return try home.devices()
    } catch {
      throw CommandFailure(error, doing: "cannot list \(home.path)")
    }
  }
}
