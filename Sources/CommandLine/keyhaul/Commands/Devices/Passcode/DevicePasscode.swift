import ArgumentParser
import KeyhaulKit

/// `keyhaul device passcode set`: sets the passcode of a device that has no passcode.
struct DevicePasscodeSet: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Set the passcode of a device that has none",
    usage: "keyhaul device passcode set NAME",
    examples: [
      "keyhaul device passcode set old-phone", "keyhaul device passcode set old-phone --new-passcode-file ~/.pin",
    ],
    flags: ["--new-passcode-file", "--dry-run"])
  static let configuration = makeConfiguration(named: "set")

  @OptionGroup(title: "The new passcode") var newPasscode: NewPasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let oldReport = try device.withSession(.reading) { try DeviceReport($0) }
    let name = oldReport.name
    guard oldReport.isPasscodeSet == false else {
      let error = KeyhaulError(.passcodeSet, name, "the set command works only on a device without a passcode")
      throw CommandError(error, device: name)
    }
    let secret = try session.password(newPasscode, of: name, isNew: true)
    if dryRun.isOn {
      try session.announce("Would set the passcode of \(name).")
      if session.isJSON { try session.writeDocument(oldReport.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.withSession(.writing) { openDevice in
      let change = CommittedChange("the passcode of \(openDevice.name) was set", of: openDevice.name)
      try session.committing(change) { () throws(KeyhaulError) in
        try openDevice.setPasscode(secret)
      }
      return try DeviceReport(openDevice)
    }
    try session.announce("Set the passcode of \(name).")
    if session.isJSON { try session.writeDocument(report.document()) }
    return .ok
  }
}

/// `keyhaul device passcode change`: changes the passcode of a device.
struct DevicePasscodeChange: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Change the passcode of a device",
    usage: "keyhaul device passcode change NAME",
    examples: [
      "keyhaul device passcode change old-phone",
      "keyhaul device passcode change old-phone --passcode-file ~/.pin --new-passcode-file ~/.new",
    ],
    flags: ["--passcode-file", "--new-passcode-file", "--dry-run"])
  static let configuration = makeConfiguration(named: "change")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup(title: "The new passcode") var newPasscode: NewPasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let oldReport = try device.withSession(.reading) { openDevice in
      try openDevice.checkPasscodeCanBeChanged()
      return try DeviceReport(openDevice)
    }
    let name = oldReport.name
    let currentPasscode = try session.password(passcode, of: name)
    let newPasscode = try session.password(newPasscode, of: name, isNew: true)
    let isSamePasscode = newPasscode.matches(currentPasscode)
    if dryRun.isOn {
      try session.announce(
        "Would change the passcode of \(name) if the current passcode given is right. A dry run does not check it.")
      if session.isJSON { try session.writeDocument(oldReport.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.withSession(.writing) { openDevice in
      let change = CommittedChange("the passcode of \(openDevice.name) was changed", of: openDevice.name)
      try session.committing(change) { () throws(KeyhaulError) in
        try openDevice.changePasscode(from: currentPasscode, to: newPasscode)
      }
      return try DeviceReport(openDevice)
    }
    try session.announce(
      isSamePasscode ? "The passcode of \(name) has not changed." : "Changed the passcode of \(name).")
    if session.isJSON { try session.writeDocument(report.document()) }
    return .ok
  }
}

/// `keyhaul device passcode remove`: removes the passcode, and destroys the items that need a passcode.
struct DevicePasscodeRemove: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Remove the passcode and destroy the items that need one",
    usage: "keyhaul device passcode remove NAME",
    examples: ["keyhaul device passcode remove old-phone"],
    flags: ["--passcode-file", "--yes", "--dry-run"])
  static let configuration = makeConfiguration(named: "remove")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let device = try target.find(in: session)
    let (oldReport, passcodeOnlyCount) = try device.withSession(.reading) { openDevice in
      try openDevice.checkPasscodeCanBeChanged()
      return (try DeviceReport(openDevice), try openDevice.passcodeOnlyItemCount())
    }
    let name = oldReport.name
    let items = HumanReadable.count(passcodeOnlyCount, "passcode-only item")
    if dryRun.isOn { return try showRemoval(oldReport, passcodeOnlyCount: passcodeOnlyCount, in: session) }
    if passcodeOnlyCount > 0 {
      try session.confirm(
        "Remove the passcode of \(name) and destroy \(items) for good?",
        action: "removing the passcode of \(name), which destroys \(items),")
    }
    let secret = try session.password(passcode, of: name)
    let (report, destroyedCount) = try device.withSession(.writing) { openDevice in
      try openDevice.requireUnchanged(since: oldReport.record.revision)
      let destroyedCount = try session.committing(CommittedChange("the passcode of \(name) was removed", of: name)) {
        () throws(KeyhaulError) in try openDevice.removePasscode(secret)
      }
      return (try DeviceReport(openDevice), destroyedCount)
    }
    let destroyedItems = HumanReadable.count(destroyedCount, "passcode-only item")
    let consequence =
      destroyedCount == 0
      ? "no item needed it" : "\(destroyedItems) \(destroyedCount == 1 ? "was" : "were") destroyed"
    try session.announce("Removed the passcode of \(name); \(consequence).")
    if session.isJSON { try session.writeDocument(report.document([("destroyed_items", .count(destroyedCount))])) }
    return .ok
  }

  /// Shows the result of removing the passcode, for a dry run.
  private func showRemoval(
    _ oldReport: DeviceReport, passcodeOnlyCount: Int, in session: Session
  ) throws(CommandError) -> CommandExitStatus {
    _ = try session.password(passcode, of: oldReport.name)
    let items = HumanReadable.count(passcodeOnlyCount, "passcode-only item")
    try session.announce(
      "Would remove the passcode of \(oldReport.name) if the passcode given is right (a dry run does not check it); "
        + (passcodeOnlyCount == 0 ? "no item needs it." : "\(items) would be destroyed."))
    if session.isJSON {
      let members: [(String, JSONValue)] = [("dry_run", true), ("destroyed_items", .count(passcodeOnlyCount))]
      try session.writeDocument(oldReport.document(members))
    }
    return .ok
  }
}

extension DeviceSession {
  /// Rejects a device without a passcode and a locked device, before the user types a passcode.
  fileprivate func checkPasscodeCanBeChanged() throws(KeyhaulError) {
    guard isPasscodeSet else { throw KeyhaulError(.noPasscode, name, "none is set") }
    guard state == .unlocked else {
      throw KeyhaulError(.locked, name, "the device must be unlocked to change its passcode")
    }
  }

  /// Returns the number of items that removing the passcode destroys. No item has to be decrypted for this.
  fileprivate func passcodeOnlyItemCount() throws -> Int {
    try keychain.rowSummaries(includingTombstones: false).count { $0.protection == .whenPasscodeSetThisDeviceOnly }
  }
}
