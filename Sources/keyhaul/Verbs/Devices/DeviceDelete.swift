import ArgumentParser
import CommandSession
import KeychainFormats
import VirtualDevice

/// `keyhaul device delete`: the device and its hardware key are gone.
struct DeviceDelete: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Delete a virtual device for good",
    usage: "keyhaul device delete NAME --confirm NAME",
    examples: ["keyhaul device delete old-phone --confirm old-phone"],
    flags: ["--confirm", "--dry-run"])
  static let configuration = described(as: "delete")

  @Option(help: ArgumentHelp("The device's name once more, so that nobody is asked for it.", valueName: "name"))
  var confirm: String?
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let found = try session.virtualDevice(target.device)
    let name = found.name.text
    let count = try itemCount(in: session)
    let whole = count.flatMap { $0 > 0 ? "\(name) and its \(Amounts.count($0, "item"))" : nil } ?? name
    if dryRun.isOn {
      try session.announce("Would delete \(whole) for good.")
    } else {
      try session.confirm(name: name, given: confirm, action: "delete \(whole == name ? "it" : whole) for good")
      try session.changing(DoneChange("\(name) was deleted", look: "keyhaul device list")) {
        () throws(CommandFailure) in try delete(found)
      }
      try session.announce("Deleted \(whole).")
    }
    if session.isJSON {
      try session.answer([
        "format": "device-deletion/1", "name": .string(name), "deleted": .boolean(!dryRun.isOn),
        "items": count.map { .count($0) } ?? .null,
      ])
    }
    return .ok
  }

  /// - Returns: `nil` for a device that cannot be read: it can be deleted all the same.
  private func itemCount(in session: Session) throws -> Int? {
    do {
      return try session.withDevice(target, .reading) { try $0.itemCount }
    } catch let failure as CommandFailure where [.damaged, .refused].contains(failure.status) {
      return nil
    }
  }

  private func delete(_ found: VirtualDevice) throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      // The folder's path has a slash, so that the home is what stands before it.
      let (home, name) = try DeviceHome.locate(found.folder, home: DeviceHome(path: "."))
      try home.delete(name, wait: target.wait.time.duration)
    } catch {
      throw CommandFailure(error, device: found.name.text)
    }
  }
}
