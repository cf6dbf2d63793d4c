import ArgumentParser
import KeyhaulKit

/// `keyhaul device passcode set`: a passcode where there is none.
struct DevicePasscodeSet: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Set the passcode of a device that has none",
    usage: "keyhaul device passcode set NAME",
    examples: [
      "keyhaul device passcode set old-phone", "keyhaul device passcode set old-phone --new-passcode-file ~/.pin",
    ],
    flags: ["--new-passcode-file", "--dry-run"])
  static let configuration = described(as: "set")

  @OptionGroup(title: "The new passcode") var newPasscode: NewPasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { try DeviceReport($0) }
    let name = before.name
    guard before.isPasscodeSet == false else {
      let error = VirtualDeviceError(.passcodeSet, name, "set works only on a device without a passcode")
      throw CommandFailure(error, device: name)
    }
    let secret = try session.password(newPasscode, of: name, isNew: true)
    if dryRun.isOn {
      try session.announce("Would set the passcode of \(name).")
      if session.isJSON { try session.answer(before.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.hold(.writing) { openDevice in
      let done = DoneChange("the passcode of \(openDevice.name) was set", of: openDevice.name)
      try session.changing(done) { () throws(VirtualDeviceError) in
        try openDevice.setPasscode(secret)
      }
      return try DeviceReport(openDevice)
    }
    try session.announce("Set the passcode of \(name).")
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}
