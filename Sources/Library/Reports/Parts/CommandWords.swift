import KeyhaulKit

/// What the commands on a page call the source of a move, its target and the backup that is to be made.
///
/// Names that were taken out of a document are not in its commands either: they say `ARCHIVE`, `DEVICE` and `TARGET`.
struct CommandWords: Sendable {
  /// The archive or the device that the page is about.
  let source: String
  let target: String
  /// The device to back up.
  let oldDevice: String
  /// The backup that is to be made of it.
  let newBackup: String

  /// - Parameters:
  ///   - document: The plan as it is saved, which may be redacted.
  ///   - sourceArgument: What the person types for the source; `nil` where it came from a stream.
  ///   - targetArgument: The same for the target.
  init(_ document: PlanDocument, source sourceArgument: String?, target targetArgument: String?) {
    self.init(
      document.source, isRedacted: document.redacted == true, source: sourceArgument, target: targetArgument)
  }

  /// The same for a report that has no target.
  init(_ origin: PlanDocument.Source, isRedacted: Bool, source sourceArgument: String?, target targetArgument: String?)
  {
    let isDevice = origin.kind == .device
    source = ShellWord.typed(isRedacted ? nil : sourceArgument, else: origin.kind.rawValue.uppercased())
    target = ShellWord.typed(isRedacted ? nil : targetArgument, else: "TARGET")
    oldDevice = isDevice ? source : ShellWord.device(named: isRedacted ? nil : origin.deviceName)
    if isDevice, !isRedacted, let device = try? DeviceName(origin.name) {
      newBackup = device.text + ".backup"
    } else {
      newBackup = "with-password.backup"
    }
  }
}
