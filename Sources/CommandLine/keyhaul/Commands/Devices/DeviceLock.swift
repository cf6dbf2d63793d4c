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
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let report = try device.hold(.writing) { openDevice in
      let wasLocked = openDevice.state == .locked
      try session.changing(DoneChange("\(openDevice.name) is locked", of: openDevice.name)) {
        () throws(VirtualDeviceError) in
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
