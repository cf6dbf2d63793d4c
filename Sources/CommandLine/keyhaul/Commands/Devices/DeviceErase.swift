import ArgumentParser
import KeyhaulKit

/// `keyhaul device erase`: empty, with the same hardware.
struct DeviceErase: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Erase all content of a device, keeping its hardware",
    usage: "keyhaul device erase NAME",
    examples: ["keyhaul device erase old-phone", "keyhaul device erase old-phone --yes"],
    flags: ["--yes", "--dry-run"])
  static let configuration = described(as: "erase")

  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { try DeviceReport($0) }
    let (name, count) = (before.name, before.itemCount ?? 0)
    let items = count == 0 ? "no items" : Amounts.count(count, "item")
    if dryRun.isOn {
      try session.announce("Would erase \(name), with \(items), for good.")
      if session.isJSON { try session.answer(before.document([("dry_run", true), ("erased_items", .count(count))])) }
      return .ok
    }
    try session.confirm("Erase \(name), with \(items), for good?", refusal: "erasing \(name), with \(items),")
    let report = try device.hold(.writing) { openDevice in
      try openDevice.requireUnchanged(since: before.record.revision)
      try session.changing(DoneChange("\(openDevice.name) was erased", of: openDevice.name)) {
        () throws(VirtualDeviceError) in
        try openDevice.erase()
      }
      return try DeviceReport(openDevice)
    }
    let wasErased = count == 0 && before.isPasscodeSet == false && before.record.lastBackup == nil
    try session.announce(
      wasErased
        ? "Erased \(name) once more: it had no items and no passcode; its keys are new, and the hardware is the same."
        : "Erased \(name), with \(items); the hardware is the same, and no passcode is set.")
    if session.isJSON { try session.answer(report.document([("erased_items", .count(count))])) }
    return .ok
  }
}
