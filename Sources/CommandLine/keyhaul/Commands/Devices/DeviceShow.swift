import ArgumentParser
import KeyhaulKit

/// `keyhaul device show`: shows a device and its state.
struct DeviceShow: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Show a virtual device",
    usage: "keyhaul device show NAME",
    examples: ["keyhaul device show old-phone", "keyhaul device show old-phone --json"],
    flags: ["--json"])
  static let configuration = makeConfiguration(named: "show")

  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let report = try device.withSession(.reading) { try DeviceReport($0) }
    if session.isJSON {
      try session.writeDocument(report.document())
      return .ok
    }
    let widest = report.lines.map { DisplayWidth.columns(of: $0.label) }.max() ?? 0
    for (label, text) in report.lines {
      let paddedLabel = DisplayWidth.padded(label, columns: widest) + "  "
      for line in WordWrap.labeled(paddedLabel, UntrustedText.escaped(text), columns: session.resultStyle.width) {
        try session.print(line)
      }
    }
    return .ok
  }
}
