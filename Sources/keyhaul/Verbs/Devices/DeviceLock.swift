import ArgumentParser
import CommandSession
import VirtualDevice

/// `keyhaul device lock`: the keys of "when unlocked" leave memory.
struct DeviceLock: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Lock a virtual device",
    usage: "keyhaul device lock NAME",
    examples: ["keyhaul device lock old-phone"],
    flags: ["--wait"])
  static let configuration = described(as: "lock")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let report = try device.hold(.writing) { held in
      try session.changing(DoneChange("\(held.name) is locked", of: held.name)) { () throws(VirtualDeviceError) in
        try held.lock()
      }
      session.detail("\(held.name) is locked")
      return try DeviceReport(held)
    }
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}
