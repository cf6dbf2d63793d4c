import KeyhaulKit

/// The names of the source, the target and the new backup in a page's commands.
///
/// Commands in a redacted document contain `ARCHIVE`, `DEVICE` and `TARGET` instead of names.
struct CommandPlaceholders: Sendable {
  /// The backup or the device that the page is about.
  let source: String
  /// The target of the restore.
  let target: String
  /// The device to back up.
  let oldDevice: String
  /// The path of the backup to create.
  let newBackup: String

  /// Creates the placeholders from a plan.
  ///
  /// - Parameters:
  ///   - document: The document of the plan, which may be redacted.
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if it is unknown.
  init(_ document: PlanDocument, source sourceArgument: String?, target targetArgument: String?) {
    self.init(
      document.source, isRedacted: document.redacted == true, source: sourceArgument, target: targetArgument)
  }

  /// Creates the placeholders from a source, for reports without a plan's document.
  init(
    _ sourceDocument: PlanDocument.Source, isRedacted: Bool, source sourceArgument: String?,
    target targetArgument: String?
  ) {
    let isDevice = sourceDocument.kind == .device
    source = ShellQuoting.argument(
      isRedacted ? nil : sourceArgument, placeholder: sourceDocument.kind.rawValue.uppercased())
    target = ShellQuoting.argument(isRedacted ? nil : targetArgument, placeholder: "TARGET")
    oldDevice = isDevice ? source : ShellQuoting.device(named: isRedacted ? nil : sourceDocument.deviceName)
    if isDevice, !isRedacted, let device = try? DeviceName(sourceDocument.name) {
      newBackup = device.text + ".backup"
    } else {
      newBackup = "with-password.backup"
    }
  }
}
