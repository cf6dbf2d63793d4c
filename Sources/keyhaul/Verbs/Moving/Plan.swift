import ArchivedKeychain
import ArgumentParser
import BackupArchive
import KeychainFormats
import Migration
import VirtualDevice

/// `keyhaul plan`: what a restore would do, decided without changing anything.
struct Plan: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Say what a restore would do, without doing it",
    usage: "keyhaul plan ARCHIVE --to DEVICE [-o FILE] [--existing replace|merge]",
    examples: [
      "keyhaul plan family.backup --to new-phone",
      "keyhaul plan family.backup --to new-phone --existing merge -o move.plan",
    ],
    flags: [
      ("--to DEVICE", "the device to restore to"), ("--existing POLICY", "items already there: replace, or merge"),
      ("-o, --output FILE", "save the plan for restore --plan"),
      ("--exit-code", "end with 2 if any item does not migrate"), HelpScreen.passwordFlag, HelpScreen.jsonFlag,
    ])
  static let configuration = described(as: "plan")

  @Argument(help: "The backup: a folder, a file, or - for a tar stream.", completion: .file())
  var archive: String
  @OptionGroup var move: MoveOptions
  @Option(
    name: .shortAndLong, help: ArgumentHelp("Save the plan in a file, for restore --plan.", valueName: "file"),
    completion: .file())
  var output: String?
  @Flag(help: "End with exit code 2 if any item does not migrate.") var exitCode = false
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: RoundLimitOptions
  @OptionGroup var wait: WaitOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    if let output, output != "-" { try session.prepareOutput(output, inputs: [archive, password.file]) }
    let named = try session.openArchive(archive, storage: opening.storage)
    return try session.withDevice(move.to, .reading, verb: "keyhaul plan", wait: wait.wait) { device in
      let opened = try session.unlock(named, password, onto: device, opening: opening)
      let plan = try session.plan(opened, of: named, onto: device, policy: move.policy)
      let report = try PlanReport(plan, of: named, onto: device, made: device.environment.clock.now())
      try say(report, in: session)
      return try status(of: report, damage: opened.keybagDamage, name: named.name)
    }
  }

  private func say(_ report: PlanReport, in session: Session) throws {
    let bytes = try report.encoded()
    if let output, output != "-" { try ReportFile.write(bytes, to: output) }
    if session.isJSON || output == "-" {
      try session.writeRaw(bytes)
      return
    }
    try report.say(in: session)
    guard let output else { return }
    try session.say()
    let policy = move.policy == .replace ? "" : " --existing \(move.policy.rawValue)"
    try session.say("Saved to \(HostileText.shown(output)). To do exactly this:")
    try session.say(
      "  keyhaul restore \(Self.word(archive)) --to \(Self.word(move.to)) --plan \(Self.word(output))\(policy)")
  }

  /// A name as a shell takes it for one word.
  private static func word(_ name: String) -> String {
    let shown = HostileText.shown(name)
    let isPlain = shown.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || "._/-:+,@%".utf8.contains(byte)
    }
    return isPlain ? shown : "'" + shown.replacing("'", with: #"'\''"#) + "'"
  }

  private func status(of report: PlanReport, damage: String?, name: String) throws(CommandFailure) -> CommandStatus {
    if let damage { throw .damagedKeybag(of: name, report: damage) }
    let summary = report.plan.summary
    if summary.unreadable > 0 { return .partial }
    return exitCode && summary.migrates < summary.total ? .differs : .ok
  }
}

extension MoveOptions {
  var policy: ExistingItemPolicy {
    switch existing ?? .replace {
    case .replace: .replace
    case .merge: .merge
    }
  }
}

extension PlanReport {
  /// The plan in text, on standard output; the warning that nothing moves goes first, to standard error.
  func say(in session: Session) throws(CommandFailure) {
    if let warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    for line in heading { try session.say(HostileText.shown(line)) }
    try session.say()
    let text = text(showsAll: session.common.verbose > 0)
    if !plan.decisions.isEmpty || !plan.removed.isEmpty {
      try session.say(text.legend)
      try session.say()
    }
    for line in text.lines(style: session.resultStyle) { try session.say(line) }
  }
}

extension Session {
  /// Unlocks an archive for a device: with its password, and with the device's hardware key.
  func unlock(
    _ named: NamedArchive, _ flags: PasswordFlags, onto device: DeviceSession, opening: RoundLimitOptions
  ) throws -> OpenedArchive {
    let key = try device.deviceKey()
    return try unlock(named, flags, deviceKey: key, accepting: opening)
  }

  func plan(
    _ opened: OpenedArchive, of named: NamedArchive, onto device: DeviceSession, policy: ExistingItemPolicy,
    only indexes: Set<Int>? = nil
  ) throws(CommandFailure) -> MigrationPlan {
    do throws(MigrationError) {
      return try Restorer.plan(opened, onto: device, policy: policy, only: indexes)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(device.name)")
    }
  }
}
