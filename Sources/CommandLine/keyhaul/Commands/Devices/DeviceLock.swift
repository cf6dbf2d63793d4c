import ArgumentParser
import KeyhaulKit

/// `keyhaul device lock`: the keys of "when unlocked" leave memory.
struct DeviceLock: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Lock a virtual device",
    usage: "keyhaul device lock NAME",
    examples: ["keyhaul device lock old-phone"],
    flags: ["--wait"])
  static let configuration = described(as: "lock")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let report = try device.hold(.writing) { openDevice in
      let wasLocked = openDevice.state == .locked
      try session.changing(DoneChange("\(openDevice.name) is locked", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.lock()
      }
      if wasLocked {
        session.note("\(openDevice.name) is already locked.")
      } else {
        session.detail("\(openDevice.name) is locked")
      }
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}

/// `keyhaul device unlock`: the passcode brings the keys into memory.
struct DeviceUnlock: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Unlock a virtual device",
    usage: "keyhaul device unlock NAME",
    examples: ["keyhaul device unlock old-phone", "keyhaul device unlock old-phone --passcode-file ~/.pin"],
    flags: ["--passcode-file", "--wait"])
  static let configuration = described(as: "unlock")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { try DeviceReport($0) }
    let name = before.name
    if !passcode.isGiven, before.state == .unlocked {
      session.note("\(name) is already unlocked.")
      if session.isJSON { try session.answer(before.document()) }
      return .ok
    }
    let secret = try session.password(passcode, of: name)
    let report = try device.hold(.writing) { openDevice in
      try session.changing(DoneChange("\(openDevice.name) is unlocked", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.unlock(passcode: secret)
      }
      if before.state == .unlocked {
        session.note("\(name) is already unlocked.")
      } else {
        session.detail("\(name) is unlocked")
      }
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}

/// `keyhaul device restart`: back to the state before the first unlock.
struct DeviceRestart: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Restart a virtual device",
    usage: "keyhaul device restart NAME",
    examples: ["keyhaul device restart old-phone"],
    flags: ["--wait"])
  static let configuration = described(as: "restart")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let report = try device.hold(.writing) { openDevice in
      try session.changing(DoneChange("\(openDevice.name) has restarted", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.restart()
      }
      session.detail("\(openDevice.name) has restarted: \(DeviceReport.text(openDevice.state))")
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}
