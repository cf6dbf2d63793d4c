import ArgumentParser
import KeyhaulKit

/// `keyhaul device show`: what a device is and what state it is in.
struct DeviceShow: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Show a virtual device",
    usage: "keyhaul device show NAME",
    examples: ["keyhaul device show old-phone", "keyhaul device show old-phone --json"],
    flags: ["--json"])
  static let configuration = described(as: "show")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let report = try device.hold(.reading) { try DeviceReport($0) }
    if session.isJSON {
      try session.answer(report.document())
      return .ok
    }
    let widest = report.lines.map { DisplayWidth.columns(of: $0.0) }.max() ?? 0
    for (label, text) in report.lines {
      let label = DisplayWidth.padded(label, columns: widest) + "  "
      for line in WordWrap.labeled(label, HostileText.shown(text), columns: session.resultStyle.width) {
        try session.say(line)
      }
    }
    return .ok
  }
}
