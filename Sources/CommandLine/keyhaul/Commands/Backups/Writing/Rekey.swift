import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul rekey`: changes, sets or removes the password of a backup.
struct Rekey: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Change the password of a backup",
    usage: "keyhaul rekey ARCHIVE [-o COPY|--in-place] [--rounds N] [--no-password]",
    examples: [
      "keyhaul rekey family.backup",
      "keyhaul rekey family.backup --password-file ~/.old --new-password-file ~/.new",
    ],
    flags: [
      "--password-file", "--new-password-file", "--rounds", "--no-password", "--device-key-file",
      .init("--accept-unproven-key", "use a device key that no item confirms"),
      .init("--output, --in-place", "change a copy, or the backup itself"),
      "--dry-run",
    ])
  static let configuration = makeConfiguration(named: "rekey")

  @Argument(help: "The backup: a folder or a file.", completion: .file()) var archive: String
  @Flag(help: "Remove the password. Afterwards, only the source device can decrypt the keychain.")
  var noPassword = false
  @Option(
    help: ArgumentHelp("The number of PBKDF2 iterations (default: unchanged).", valueName: "n"),
    transform: IterationCount.parseWritten)
  var rounds: IterationCount?
  @Flag(
    help: ArgumentHelp(
      "Use a device key that no item of the backup confirms. (--yes does not confirm this.)",
      discussion: "If the key is wrong, no device can decrypt the backup's keychain afterwards."))
  var acceptUnprovenKey = false
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "The new password") var newPassword: NewPasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup(title: "Where the changed backup goes") var change: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// The kind of change to the password.
  enum PasswordChange {
    case change, add, remove
  }

  func run(in session: Session) throws -> CommandExitStatus {
    // Leftovers are next to the file that a link points to, not next to the link.
    let backup = try SourceResolver(session).backup(archive)
    let path = URL(filePath: try backup.requirePath(for: "rekey")).resolvingSymlinksInPath().path
    try change.check(
      differsFrom: backup.files + [password.file, newPassword.file, decryption.deviceKeyFile], in: session)
    let onlyReads = dryRun.isOn || change.output != nil
    let loaded = try backup.open(onlyReads ? .reading : .writing, storage: decryption.storage, in: session)
    do throws(KeyhaulError) {
      try loaded.archive.requireUsable(for: .rewriting)
      try BackupRewriter.checkRekeying(of: loaded.archive)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    let passwordChange = try passwordChange(of: loaded)
    let target = try change.target(for: loaded, isDryRun: dryRun.isOn, in: session)
    switch passwordChange {
    case .change: try changePassword(of: loaded, at: path, to: target, in: session)
    case .add: try BackupReencryption(self, loaded, path, target, in: session).addPassword(in: session)
    case .remove: try BackupReencryption(self, loaded, path, target, in: session).removePassword(in: session)
    }
    return .ok
  }

  private func passwordChange(of loaded: LoadedBackup) throws(CommandError) -> PasswordChange {
    if noPassword, newPassword.isGiven {
      throw .usage("--no-password and a new password cannot be used together", try: "use only one of them")
    }
    if noPassword, rounds != nil {
      throw .usage(
        "--no-password and --rounds cannot be used together",
        why: "a backup without a password needs no slow key derivation",
        try: "use only one of them")
    }
    switch (loaded.archive.isEncrypted, noPassword) {
    case (true, true):
      try checkCanBeReencrypted(loaded, "the password of \(loaded.name) cannot be removed")
      return .remove
    case (false, true):
      throw .usage("\(loaded.name) has no password to remove", why: "it is not encrypted")
    case (false, false):
      try checkCanBeReencrypted(loaded, "\(loaded.name) cannot be given a password")
      return .add
    case (true, false):
      guard rounds == nil || loaded.archive.keybag.secondStep != nil else {
        throw .usage(
          "--rounds cannot be set for \(loaded.name)",
          why: "its keybag has no second iteration count, as in iOS 10.1 and earlier", try: "leave --rounds out")
      }
      return .change
    }
  }

  /// Rejects a backup whose files cannot be encrypted or decrypted, before asking for a key.
  private func checkCanBeReencrypted(_ loaded: LoadedBackup, _ message: String) throws(CommandError) {
    do throws(KeyhaulError) {
      try BackupRewriter.checkReencryption(of: loaded.archive)
    } catch {
      throw CommandError(
        CommandExitStatus(error.category), message, why: error.reason,
        try: loaded.archive.isEncrypted
          ? "keyhaul rekey \(ShellQuoting.quote(loaded.name)) gives it another password"
          : "make a new backup of the device, with a password")
    }
  }

  // MARK: Changing the password

  /// A password that is known to be right, and its key.
  private struct VerifiedPassword: ~Copyable {
    let password: Secret
    let key: BackupKey
  }

  private func changePassword(
    of loaded: LoadedBackup, at path: String, to target: BackupRewriter.Target, in session: Session
  ) throws {
    try rejectDeviceKeyFlags(for: loaded)
    let unlocker = BackupUnlocker(loaded, decryption, in: session)
    try unlocker.checkIterationCount()
    let iterationCount = totalIterations(of: loaded.archive.keybag)
    let rekeyed = try RekeyedKeybag(
      of: loaded, rounds: rounds?.value, acceptingAtMost: max(decryption.maximumIterations, iterationCount))
    // Tries the current password before asking for the new password.
    let current = try currentPassword(of: loaded, unlocker, rekeyed, in: session)
    let chosenPassword = try rekeyed.password { () throws(CommandError) in
      try session.password(newPassword, of: loaded.name)
    }
    let isSamePassword = chosenPassword.box.secret.matches(current.password)
    let keys = try unlocker.classKeys(with: current.key)
    try rejectChangedManifest(of: loaded, keys: keys)
    warnAboutDamage(of: loaded, keys: keys, in: session)
    if isSamePassword, wouldChangeOnlyPassword(of: loaded) {
      return try reportNothingToDo(loaded, at: path, in: session)
    }
    let newKeybag = try unlocker.deriving(iterationCount: iterationCount) { (progress) throws(DataProtectionError) in
      try rekeyed.rewrapped(fromPasscodeKey: current.key.passcodeKey, to: chosenPassword, progress: progress)
    }
    if !dryRun.isOn {
      try write(
        newKeybag, of: loaded, at: path, to: target, keys: keys, isSamePassword: isSamePassword, in: session)
    }
    try reportChange(of: loaded, to: newKeybag, isSamePassword: isSamePassword, in: session)
  }

  /// Returns the number of iterations that the new password's key needs in both derivations.
  private func totalIterations(of keybag: Keybag) -> Int {
    rounds.map { $0.value + Int(keybag.iterations ?? 0) } ?? keybag.totalIterations
  }

  /// Asks for the current password and derives its key. If the new password need not be typed, its key is derived in
  /// parallel.
  private func currentPassword(
    of loaded: LoadedBackup, _ unlocker: BackupUnlocker, _ rekeyed: RekeyedKeybag, in session: Session
  ) throws(CommandError) -> VerifiedPassword {
    try session.withPassword(password, of: loaded.name) { (password) throws(CommandError) in
      if try newPassword.source(environment: session.environment) != .prompt {
        try rekeyed.prefetch { () throws(CommandError) in try session.password(newPassword, of: loaded.name) }
      }
      let key = try unlocker.key(password: password.copy())
      return VerifiedPassword(password: password, key: key)
    }
  }

  /// Returns whether the command would change nothing except the password. If so, it writes no copy, keeps the iteration
  /// count, and has no unfinished seal to complete.
  private func wouldChangeOnlyPassword(of loaded: LoadedBackup) -> Bool {
    let currentRounds = loaded.archive.keybag.secondStep.map { Int($0.iterations) }
    let keepsRounds = rounds == nil || rounds?.value == currentRounds
    return change.output == nil && keepsRounds && !BackupRewriter.hasUnfinishedSeal(loaded.archive)
  }

  /// Rejects the flags for a device key, which Keyhaul needs only to set or remove a password.
  private func rejectDeviceKeyFlags(for loaded: LoadedBackup) throws(CommandError) {
    if acceptUnprovenKey {
      throw .usage(
        "--accept-unproven-key is not used to change the password of \(loaded.name)",
        why: "only its class keys are wrapped again, without a device key", try: "leave --accept-unproven-key out")
    }
    if try decryption.deviceKeySource() != nil {
      throw .usage(
        "a device key is not used to change the password of \(loaded.name)",
        why: "only its class keys are wrapped again", try: "leave the device key out")
    }
  }

  /// Writes a new keybag into the backup, or into a copy of it.
  private func write(
    _ keybag: Keybag, of loaded: LoadedBackup, at path: String, to target: BackupRewriter.Target, keys: ClassKeys,
    isSamePassword: Bool, in session: Session
  ) throws(CommandError) {
    let state = isSamePassword ? "was rekeyed with the same password" : "has the new password"
    let committedChange = change.committedChange(
      inPlace: CommittedChange("\(loaded.name) \(state)", at: loaded.name))
    let copy = try session.rewriting(loaded, to: change.output, committedChange) {
      (rewriter, progress) throws(KeyhaulError) -> RewrittenBackup? in
      switch target {
      case .inPlace:
        try rewriter.replaceKeybag(of: loaded.archive, at: path, with: keybag, keys: keys, progress: progress)
        return nil
      case .copy(let destination, let replace):
        return try rewriter.copy(
          loaded.archive, at: path, to: destination, replace: replace, with: keybag, keys: keys, progress: progress)
      }
    }
    session.warnIfOldBackupRemains(copy?.leftover)
    session.warn(aboutUnrelatedFiles: copy?.unrelatedFiles ?? [])
  }

  /// Rejects a manifest that was changed after the device wrote it. An unreadable manifest is not rejected, because it only
  /// causes a warning about the damage.
  private func rejectChangedManifest(of loaded: LoadedBackup, keys: ClassKeys) throws(CommandError) {
    guard let fileList = try? loaded.archive.fileList(with: keys),
      let finding = fileList.findings.first(where: { $0.blocks(.rewriting) })
    else { return }
    throw CommandError(backup: finding.refusal, name: loaded.name)
  }

  /// Warns about damage, which a new password does not repair.
  private func warnAboutDamage(of loaded: LoadedBackup, keys: ClassKeys, in session: Session) {
    for damage in loaded.archive.visibleDamage(with: keys) {
      session.warn(
        "\(loaded.name) is damaged; changing the password does not repair it", why: damage,
        try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) shows what can be saved")
    }
  }

  // MARK: The report

  /// Reports that the backup already has the new password. Also removes leftovers of killed commands, except in a dry
  /// run.
  private func reportNothingToDo(_ loaded: LoadedBackup, at path: String, in session: Session) throws {
    if !dryRun.isOn { BackupRewriter().removeLeftovers(of: loaded.archive, at: path) }
    let sentence = "Nothing to do: \(UntrustedText.escaped(loaded.name)) already has this password."
    try report(
      loaded, loaded.archive.keybag, doneSentence: sentence, dryRunSentence: sentence, isWritten: false, in: session)
  }

  /// Reports that the backup was rekeyed, with a new password or with the current password.
  private func reportChange(
    of loaded: LoadedBackup, to newKeybag: Keybag, isSamePassword: Bool, in session: Session
  ) throws {
    let changesIterations = newKeybag.secondStep?.iterations != loaded.archive.keybag.secondStep?.iterations
    let consequence =
      switch (isSamePassword, changesIterations) {
      case (true, true): "Its password has not changed; its iteration count has."
      case (true, false): "Its password has not changed."
      case (false, _): "The old password no longer works for this copy. Other copies still use it."
      }
    let name = UntrustedText.escaped(loaded.name)
    try report(
      loaded, newKeybag, doneSentence: "Rekeyed \(name)\(change.ending(for: loaded.name)). \(consequence)",
      dryRunSentence: "Would rekey \(name).", in: session)
  }

  /// Prints the result.
  ///
  /// - Parameter isKeyProven: Whether an item confirms the device key; `nil` if no device key was used.
  func report(
    _ loaded: LoadedBackup, _ keybag: Keybag, doneSentence: String, dryRunSentence: String, isWritten: Bool = true,
    isKeyProven: Bool? = nil, in session: Session
  ) throws(CommandError) {
    if session.isJSON {
      let document = RekeyDocument(
        of: loaded.name, keybag, isEncrypted: !noPassword, isWritten: isWritten && !dryRun.isOn, isDryRun: dryRun.isOn,
        isKeyProven: isKeyProven)
      return try session.writeDocument(document.json.adding(change.members))
    }
    try session.announce(dryRun.isOn ? dryRunSentence : doneSentence)
    session.reportDryRun(dryRun)
  }
}
