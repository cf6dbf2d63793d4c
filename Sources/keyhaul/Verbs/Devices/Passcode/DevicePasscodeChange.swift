import ArgumentParser
import CommandSession
import KeychainFormats
import VirtualDevice

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
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { held in
      try held.requireChangeablePasscode()
      return try DeviceReport(held)
    }
    let name = before.name
    let old = try session.password(passcode, of: name)
    let new = try session.password(newPasscode, of: name, isNew: true)
    if dryRun.isOn {
      try session.announce("Would change the passcode of \(name).")
      if session.isJSON { try session.answer(before.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.hold(.writing) { held in
      let done = DoneChange("the passcode of \(held.name) was changed", of: held.name)
      try session.changing(done) { () throws(VirtualDeviceError) in
        try held.changePasscode(from: old, to: new)
      }
      return try DeviceReport(held)
    }
    try session.announce("Changed the passcode of \(name).")
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}
