import ArgumentParser
import KeyhaulKit

/// `keyhaul device passcode change`: another passcode.
struct DevicePasscodeChange: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Change the passcode of a device",
    usage: "keyhaul device passcode change NAME",
    examples: [
      "keyhaul device passcode change old-phone",
      "keyhaul device passcode change old-phone --passcode-file ~/.pin --new-passcode-file ~/.new",
    ],
    flags: ["--passcode-file", "--new-passcode-file", "--dry-run"])
  static let configuration = described(as: "change")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup(title: "The new passcode") var newPasscode: NewPasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { openDevice in
      try openDevice.requireChangeablePasscode()
      return try DeviceReport(openDevice)
    }
    let name = before.name
    let old = try session.password(passcode, of: name)
    let new = try session.password(newPasscode, of: name, isNew: true)
    let isSame = new.matches(old)
    if dryRun.isOn {
      try session.announce(
        "Would change the passcode of \(name), if the given one is right: a dry run does not try it.")
      if session.isJSON { try session.answer(before.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.hold(.writing) { openDevice in
      let done = DoneChange("the passcode of \(openDevice.name) was changed", of: openDevice.name)
      try session.changing(done) { () throws(VirtualDeviceError) in
        try openDevice.changePasscode(from: old, to: new)
      }
      return try DeviceReport(openDevice)
    }
    try session.announce(
      isSame ? "The passcode of \(name) is the same as before." : "Changed the passcode of \(name).")
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}
