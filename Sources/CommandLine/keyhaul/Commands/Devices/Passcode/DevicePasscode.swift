import ArgumentParser
import KeyhaulKit

/// `keyhaul device passcode set`: a passcode where there is none.
struct DevicePasscodeSet: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Set the passcode of a device that has none",
    usage: "keyhaul device passcode set NAME",
    examples: [
      "keyhaul device passcode set old-phone", "keyhaul device passcode set old-phone --new-passcode-file ~/.pin",
    ],
    flags: ["--new-passcode-file", "--dry-run"])
  static let configuration = described(as: "set")

  @OptionGroup(title: "The new passcode") var newPasscode: NewPasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { try DeviceReport($0) }
    let name = before.name
    guard before.isPasscodeSet == false else {
      let error = KeyhaulError(.passcodeSet, name, "the set command works only on a device without a passcode")
      throw CommandFailure(error, device: name)
    }
    let secret = try session.password(newPasscode, of: name, isNew: true)
    if dryRun.isOn {
      try session.announce("Would set the passcode of \(name).")
      if session.isJSON { try session.answer(before.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.hold(.writing) { openDevice in
      let done = DoneChange("the passcode of \(openDevice.name) was set", of: openDevice.name)
      try session.changing(done) { () throws(KeyhaulError) in
        try openDevice.setPasscode(secret)
      }
      return try DeviceReport(openDevice)
    }
    try session.announce("Set the passcode of \(name).")
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}

/// `keyhaul device passcode change`: another passcode.
struct DevicePasscodeChange: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Change the passcode of a device",
    usage: "keyhaul device passcode change NAME",
    examples: [
      "keyhaul device passcode change old-phone",
      "keyhaul device passcode change old-phone --passcode-file ~/.pin --new-passcode-file ~/.new",
    ],
    flags: ["--passcode-file", "--new-passcode-file", "--dry-run"])
  static let configuration = described(as: "change")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup(title: "The new passcode") var newPasscode: NewPasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let before = try device.hold(.reading) { openDevice in
      try openDevice.requireChangeablePasscode()
      return try DeviceReport(openDevice)
    }
    let name = before.name
    let old = try session.password(passcode, of: name)
    let new = try session.password(newPasscode, of: name, isNew: true)
    let isSame = new.matches(old)
    if dryRun.isOn {
      try session.announce(
        "Would change the passcode of \(name) if the current passcode given is right. A dry run does not check it.")
      if session.isJSON { try session.answer(before.document([("dry_run", true)])) }
      return .ok
    }
    let report = try device.hold(.writing) { openDevice in
      let done = DoneChange("the passcode of \(openDevice.name) was changed", of: openDevice.name)
      try session.changing(done) { () throws(KeyhaulError) in
        try openDevice.changePasscode(from: old, to: new)
      }
      return try DeviceReport(openDevice)
    }
    try session.announce(
      isSame ? "The passcode of \(name) has not changed." : "Changed the passcode of \(name).")
    if session.isJSON { try session.answer(report.document()) }
    return .ok
  }
}

/// `keyhaul device passcode remove`: destroys the items that need a passcode, for good.
struct DevicePasscodeRemove: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Remove the passcode and destroy the items that need one",
    usage: "keyhaul device passcode remove NAME",
    examples: ["keyhaul device passcode remove old-phone"],
    flags: ["--passcode-file", "--yes", "--dry-run"])
  static let configuration = described(as: "remove")

  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let device = try target.find(in: session)
    let (before, passcodeOnlyCount) = try device.hold(.reading) { openDevice in
      try openDevice.requireChangeablePasscode()
      return (try DeviceReport(openDevice), try openDevice.passcodeOnlyItemCount())
    }
    let name = before.name
    let items = HumanReadable.count(passcodeOnlyCount, "passcode-only item")
    if dryRun.isOn {
      _ = try session.password(passcode, of: name)
      try session.announce(
        "Would remove the passcode of \(name) if the passcode given is right (a dry run does not check it); "
          + (passcodeOnlyCount == 0 ? "no item needs it." : "\(items) would be destroyed."))
      if session.isJSON {
        try session.answer(before.document([("dry_run", true), ("destroyed_items", .count(passcodeOnlyCount))]))
      }
      return .ok
    }
    if passcodeOnlyCount > 0 {
      try session.confirm(
        "Remove the passcode of \(name) and destroy \(items) for good?",
        refusal: "removing the passcode of \(name), which destroys \(items),")
    }
    let secret = try session.password(passcode, of: name)
    let (report, destroyed) = try device.hold(.writing) { openDevice in
      try openDevice.requireUnchanged(since: before.record.revision)
      let destroyed = try session.changing(DoneChange("the passcode of \(name) was removed", of: name)) {
        () throws(KeyhaulError) in try openDevice.removePasscode(secret)
      }
      return (try DeviceReport(openDevice), destroyed)
    }
    let end =
      destroyed == 0
      ? "no item needed it"
      : "\(HumanReadable.count(destroyed, "passcode-only item")) \(destroyed == 1 ? "was" : "were") destroyed"
    try session.announce("Removed the passcode of \(name); \(end).")
    if session.isJSON { try session.answer(report.document([("destroyed_items", .count(destroyed))])) }
    return .ok
  }
}

extension DeviceSession {
  /// How many items go when the passcode does. Needs no key.
  fileprivate func passcodeOnlyItemCount() throws -> Int {
    try keychain.rowSummaries(includingTombstones: false).count { $0.protection == .whenPasscodeSetThisDeviceOnly }
  }
}
