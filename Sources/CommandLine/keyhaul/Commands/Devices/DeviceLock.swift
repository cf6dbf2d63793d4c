import ArgumentParser
import KeyhaulKit

/// `keyhaul device lock`: locks a device, which removes the class keys of "when unlocked" from memory.
struct DeviceLock: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Lock a virtual device",
    usage: "keyhaul device lock NAME",
    examples: ["keyhaul device lock old-phone"],
    flags: ["--wait"])
  static let configuration = makeConfiguration(named: "lock")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let report = try device.withSession(.writing) { openDevice in
      let wasLocked = openDevice.state == .locked
      try session.committing(CommittedChange("\(openDevice.name) is locked", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.lock()
      }
      if wasLocked {
        session.info("\(openDevice.name) is already locked.")
      } else {
        session.debug("\(openDevice.name) is locked")
      }
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.writeDocument(report.document()) }
    return .ok
  }
}

/// `keyhaul device unlock`: unlocks a device with its passcode.
struct DeviceUnlock: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Unlock a virtual device",
    usage: "keyhaul device unlock NAME",
    examples: ["keyhaul device unlock old-phone", "keyhaul device unlock old-phone --passcode-file ~/.pin"],
    flags: ["--passcode-file", "--wait"])
  static let configuration = makeConfiguration(named: "unlock")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let oldReport = try device.withSession(.reading) { try DeviceReport($0) }
    let name = oldReport.name
    if !passcode.isGiven, oldReport.state == .unlocked {
      session.info("\(name) is already unlocked.")
      if session.isJSON { try session.writeDocument(oldReport.document()) }
      return .ok
    }
    let secret = try session.password(passcode, of: name)
    let report = try device.withSession(.writing) { openDevice in
      try session.committing(CommittedChange("\(openDevice.name) is unlocked", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.unlock(passcode: secret)
      }
      if oldReport.state == .unlocked {
        session.info("\(name) is already unlocked.")
      } else {
        session.debug("\(name) is unlocked")
      }
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.writeDocument(report.document()) }
    return .ok
  }
}

/// `keyhaul device restart`: restarts a device, which is then in the state before the first unlock.
struct DeviceRestart: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Restart a virtual device",
    usage: "keyhaul device restart NAME",
    examples: ["keyhaul device restart old-phone"],
    flags: ["--wait"])
  static let configuration = makeConfiguration(named: "restart")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let report = try device.withSession(.writing) { openDevice in
      try session.committing(CommittedChange("\(openDevice.name) has restarted", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.restart()
      }
      session.debug("\(openDevice.name) has restarted: \(DeviceReport.text(openDevice.state))")
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.writeDocument(report.document()) }
    return .ok
  }
}
