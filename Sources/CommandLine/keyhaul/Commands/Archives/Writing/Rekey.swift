import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul rekey`: another password for a backup, a first one, or none.
struct Rekey: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Change the password of a backup",
    usage: "keyhaul rekey ARCHIVE [--rounds N] [--no-password]",
    examples: [
      "keyhaul rekey family.backup",
      "keyhaul rekey family.backup --password-file ~/.old --new-password-file ~/.new",
    ],
    flags: [
      "--password-file", "--new-password-file", "--rounds", "--no-password", "--device-key-file", "--dry-run",
    ])
  static let configuration = described(as: "rekey")

  @Argument(help: "The backup: a folder or a file.", completion: .file()) var archive: String
  @Flag(help: "Remove the password; only the source device can then decrypt the keychain.")
  var noPassword = false
  @Option(
    help: ArgumentHelp("The number of PBKDF2 iterations (default: unchanged).", valueName: "n"),
    transform: RoundCount.parseWritten)
  var rounds: RoundCount?
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Its new password") var newPassword: NewPasswordFlags
  @OptionGroup(title: "Opening") var opening: OpeningOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  /// What becomes of the password.
  enum Change {
    case another, first, none
  }

  func perform(in session: Session) throws -> CommandStatus {
    // Beside a link stands another file than beside what it points to.
    let found = try ArgumentFinder(session).archive(archive)
    let path = URL(filePath: try found.requirePath(for: "rekey")).resolvingSymlinksInPath().path
    let named = try found.open(storage: opening.storage, in: session)
    do throws(BackupArchiveError) {
      try named.archive.require(.rewriting)
      try BackupRewriter.checkRekeying(of: named.archive)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    switch try change(named) {
    case .another: try change(named, at: path, in: session)
    case .first: try HardwareRekey(self, named, path, in: session).protect(in: session)
    case .none: try HardwareRekey(self, named, path, in: session).unprotect(in: session)
    }
    return .ok
  }

  private func change(_ named: NamedArchive) throws(CommandFailure) -> Change {
    if noPassword, newPassword.isGiven {
      throw .usage("--no-password and a new password cannot be used together", try: "use only one of them")
    }
    if noPassword, rounds != nil {
      throw .usage(
        "--no-password and --rounds cannot be used together",
        why: "a backup without a password needs no slow key derivation",
        try: "use only one of them")
    }
    switch (named.archive.isEncrypted, noPassword) {
    case (true, true):
      try requireReencryptable(named, "the password of \(named.name) cannot be removed")
      return .none
    case (false, true):
      throw .usage("\(named.name) has no password to remove", why: "it is not encrypted")
    case (false, false):
      try requireReencryptable(named, "\(named.name) cannot be given a password")
      return .first
    case (true, false):
      guard rounds == nil || named.archive.keybag.secondRound != nil else {
        throw .usage(
          "--rounds cannot be set for \(named.name)",
          why: "its keybag has one iteration, like backups of iOS 10.1 and earlier", try: "leave --rounds out")
      }
      return .another
    }
  }

  /// Refuses a backup whose files cannot be encrypted or decrypted, before anybody is asked for the key of its device.
  private func requireReencryptable(_ named: NamedArchive, _ message: String) throws(CommandFailure) {
    do throws(BackupArchiveError) {
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(
        CommandStatus(error.category), message, why: error.reason,
        try: named.archive.isEncrypted
          ? "keyhaul rekey \(ShellWord.quoted(named.name)) gives it another password"
          : "a new backup of its device, made with a password")
    }
  }

  // MARK: Another password

  /// A password that opens the backup, and the key that follows from it.
  private struct ProvenPassword: ~Copyable {
    let password: Secret
    let key: ArchiveKey
  }

  private func change(_ named: NamedArchive, at path: String, in session: Session) throws {
    if try opening.deviceKeySource() != nil {
      throw CommandFailure.usage(
        "a device key is not used to change the password of \(named.name)",
        why: "only its class keys are wrapped again", try: "leave the device key out")
    }
    // Tried before the new one is asked for: nobody types two passwords in vain.
    let unlocker = ArchiveUnlocker(named, opening, in: session)
    try unlocker.checkRounds()
    let keybag = named.archive.keybag
    let count = rounds.map { $0.value + Int(keybag.iterations ?? 0) } ?? keybag.totalRounds
    let renewed = try RenewedKeybag(of: named, rounds: rounds?.value, acceptingAtMost: max(opening.rounds, count))
    let old = try session.withPassword(password, of: named.name) { (typed) throws(CommandFailure) in
      // One that is not typed is available: its key is derived beside the old one's.
      if try newPassword.source(environment: session.environment) != .prompt {
        try renewed.begin { () throws(CommandFailure) in try session.password(newPassword, of: named.name) }
      }
      let key = try unlocker.key(password: typed.copy())
      return ProvenPassword(password: typed, key: key)
    }
    let new = try renewed.password { () throws(CommandFailure) in
      try session.password(newPassword, of: named.name)
    }
    let isSame = new.held.secret.matches(old.password)
    try requireSoundList(of: named, keys: try unlocker.classKeys(with: old.key))
    warnOfLosses(of: named, keys: try unlocker.classKeys(with: old.key), in: session)
    if isSame, !BackupRewriter.hasUnfinishedSeal(named.archive),
      rounds == nil || rounds.map({ Int($0.value) }) == keybag.secondRound.map({ Int($0.rounds) })
    {
      if !dryRun.isOn { BackupRewriter().sweepLeftovers(of: named.archive, at: path) }
      let sentence = "Nothing to do: \(HostileText.shown(named.name)) already has this password."
      return try report(named, keybag, did: sentence, would: sentence, isWritten: false, in: session)
    }
    let changed = try unlocker.deriving(rounds: count) { (progress) throws(DataProtectionError) in
      try renewed.rewrapped(fromPasscodeKey: old.key.passcodeKey, to: new, progress: progress)
    }
    if !dryRun.isOn {
      try replaceKeybag(of: named, at: path, with: changed, keys: try unlocker.classKeys(with: old.key), in: session)
    }
    try report(
      named, changed,
      did: "Rekeyed \(HostileText.shown(named.name)). "
        + (isSame
          ? "Its password is the same as before; its iteration count has changed."
          : "The old password no longer works; other copies still use it."),
      would: "Would rekey \(HostileText.shown(named.name)).",
      in: session)
  }

  /// Refuses a list of files that is not what its device wrote. One that cannot be read at all is a loss to warn of.
  private func requireSoundList(of named: NamedArchive, keys: borrowing ClassKeys) throws(CommandFailure) {
    guard let list = try? named.archive.fileList(with: keys),
      let finding = list.findings.first(where: { $0.forbids(.rewriting) })
    else { return }
    throw CommandFailure(archive: finding.refusal, name: named.name)
  }

  /// Another password heals nothing.
  private func warnOfLosses(of named: NamedArchive, keys: borrowing ClassKeys, in session: Session) {
    for loss in named.archive.visibleLosses(with: keys) {
      session.warn(
        "\(named.name) is damaged, and stays damaged with another password", why: loss,
        try: "keyhaul verify \(ShellWord.quoted(named.name)) says what can be saved")
    }
  }

  private func replaceKeybag(
    of named: NamedArchive, at path: String, with keybag: Keybag, keys: borrowing ClassKeys?, in session: Session
  ) throws(CommandFailure) {
    try Interruption.check()
    do throws(BackupArchiveError) {
      try session.progress("Writing \(named.name)", phase: "write") { (report) throws(BackupArchiveError) in
        try session.changing(Self.done("\(named.name) has the new password", named)) {
          () throws(BackupArchiveError) in
          _ = try BackupRewriter().replaceKeybag(
            of: named.archive, at: path, with: keybag, keys: keys, progress: report.orInterrupted)
        }
      }
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  static func done(_ what: String, _ named: NamedArchive) -> DoneChange {
    DoneChange(what, look: "keyhaul inspect \(ShellWord.quoted(named.name))")
  }

  // MARK: The report

  func report(
    _ named: NamedArchive, _ keybag: Keybag, did: String, would: String, isWritten: Bool = true, in session: Session
  ) throws(CommandFailure) {
    if session.isJSON {
      let rounds = [keybag.secondRound?.rounds, keybag.iterations].compactMap(\.self)
      return try session.answer([
        "format": "rekey-result/1", "archive": .string(named.name), "encrypted": .boolean(!noPassword),
        "rounds": .array(rounds.map { .integer(Int64($0)) }), "written": .boolean(isWritten && !dryRun.isOn),
        "dry_run": .boolean(dryRun.isOn),
      ])
    }
    try session.announce(dryRun.isOn ? would : did)
    if dryRun.isOn { session.note("Nothing was written (--dry-run).") }
  }
}
