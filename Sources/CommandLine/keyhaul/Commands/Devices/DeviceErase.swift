import ArgumentParser
import KeyhaulKit

/// `keyhaul device erase`: erases the contents of a device, but keeps its device key.
struct DeviceErase: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Erase all content of a device, but keep its device key",
    usage: "keyhaul device erase NAME",
    examples: ["keyhaul device erase old-phone", "keyhaul device erase old-phone --yes"],
    flags: ["--yes", "--dry-run"])
  static let configuration = makeConfiguration(named: "erase")

  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let oldReport = try device.withSession(.reading) { try DeviceReport($0) }
    let (name, count) = (oldReport.name, oldReport.itemCount ?? 0)
    let items = count == 0 ? "no items" : HumanReadable.count(count, "item")
    if dryRun.isOn {
      try session.announce("Would erase \(name), with \(items), for good.")
      if session.isJSON {
        try session.writeDocument(oldReport.document([("dry_run", true), ("erased_items", .count(count))]))
      }
      return .ok
    }
    try session.confirm("Erase \(name), with \(items), for good?", action: "erasing \(name), with \(items),")
    let report = try device.withSession(.writing) { openDevice in
      try openDevice.requireUnchanged(since: oldReport.record.revision)
      try session.committing(CommittedChange("\(openDevice.name) was erased", of: openDevice.name)) {
        () throws(KeyhaulError) in
        try openDevice.erase()
      }
      return try DeviceReport(openDevice)
    }
    let wasAlreadyErased = count == 0 && oldReport.isPasscodeSet == false && oldReport.record.lastBackup == nil
    try session.announce(
      wasAlreadyErased
        ? "Erased \(name) again. It had no items and no passcode. Its keys are new; its device key is the same."
        : "Erased \(name), with \(items). Its device key is the same, and no passcode is set.")
    if session.isJSON { try session.writeDocument(report.document([("erased_items", .count(count))])) }
    return .ok
  }
}

/// `keyhaul device delete`: deletes a device together with its device key.
struct DeviceDelete: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Delete a virtual device for good",
    usage: "keyhaul device delete NAME --confirm NAME",
    examples: ["keyhaul device delete old-phone --confirm old-phone"],
    flags: ["--confirm", "--dry-run"])
  static let configuration = makeConfiguration(named: "delete")

  @Option(help: ArgumentHelp("The device's name again, to confirm without a question.", valueName: "name"))
  var confirm: String?
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let name = device.name
    try device.rejectUnrelatedFiles()
    let count = try itemCount(of: device)
    let hasItems = count.map { $0 > 0 } ?? false
    let deviceAndItems = hasItems ? "\(name) and its \(HumanReadable.count(count ?? 0, "item"))" : name
    let action = "delete \(hasItems ? deviceAndItems : "it") for good"
    if dryRun.isOn {
      // A dry run does not ask, but checks a confirmation that was given.
      if let confirm { try session.confirm(name: name, confirmation: confirm, action: action) }
      try session.announce("Would delete \(deviceAndItems) for good.")
    } else {
      try session.confirm(name: name, confirmation: confirm, action: action)
      try session.committing(CommittedChange("\(name) was deleted", inspectCommand: "keyhaul device list")) {
        () throws(CommandError) in try device.delete()
      }
      try session.announce("Deleted \(deviceAndItems).")
    }
    if session.isJSON {
      try session.writeDocument([
        "format": "device-deletion/1", "name": .string(name), "deleted": .boolean(!dryRun.isOn),
        "items": count.map { .count($0) } ?? .null,
      ])
    }
    return .ok
  }

  /// Returns the number of items; `nil` if the device cannot be read. Such a device can be deleted anyway.
  private func itemCount(of device: ResolvedDevice) throws -> Int? {
    do {
      return try device.withSession(.reading) { try $0.itemCount }
    } catch let failure as CommandError where [.damaged, .refused].contains(failure.status) {
      return nil
    }
  }
}
