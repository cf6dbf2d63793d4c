import ArgumentParser
import KeyhaulKit

/// `keyhaul device restart`: back to the state before the first unlock.
struct DeviceRestart: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Restart a virtual device",
    usage: "keyhaul device restart NAME",
    examples: ["keyhaul device restart old-phone"],
    flags: ["--wait"])
  static let configuration = described(as: "restart")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let report = try device.hold(.writing) { openDevice in
      try session.changing(DoneChange("\(openDevice.name) has restarted", of: openDevice.name)) {
        () throws(VirtualDeviceError) in
        try openDevice.restart()
      }
      session.detail("\(openDevice.name) has restarted: \(DeviceReport.text(openDevice.state))")
      return try DeviceReport(openDevice)
    }
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}
