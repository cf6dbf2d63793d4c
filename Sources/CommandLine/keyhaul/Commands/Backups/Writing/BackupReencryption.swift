import KeyhaulKit
import Reports

/// Sets or removes a backup's password. Both need the source device's key, and change every file.
struct BackupReencryption {
  private let command: Rekey
  private let loaded: LoadedBackup
  private let unlocker: BackupUnlocker
  private let path: String
  private let target: BackupRewriter.Target
  private let confirmation: DeviceKeyConfirmation

  init(_ command: Rekey, _ loaded: LoadedBackup, _ path: String, _ target: BackupRewriter.Target, in session: Session) {
    self.command = command
    self.loaded = loaded
    unlocker = BackupUnlocker(loaded, command.decryption, in: session)
    confirmation = DeviceKeyConfirmation(unlocker, acceptsUnprovenKey: command.acceptUnprovenKey)
    self.path = path
    self.target = target
  }

  /// Encrypts the backup with a new password.
  func addPassword(in session: Session) throws {
    try requireDeviceKeybag()
    try checkFolderCanBeReplaced()
    let oldKey = try unlocker.key(command.password, unexpectedPassword: "--new-password-file with the new password")
    let candidate = try confirmation.availableKey(to: "set a password on")
    let (deviceKey, isProven) = try confirmation.confirm(candidate, with: oldKey)
    let newPassword = try session.password(command.newPassword, of: loaded.name)
    let rounds = command.rounds?.value ?? BackupKeybag.standardRounds
    let keybag = try unlocker.deriving(iterationCount: rounds + Int(BackupKeybag.lastRounds)) {
      (progress) throws(DataProtectionError) in
      try BackupKeybag.addingPassword(
        loaded.archive.keybag, passcodeKey: oldKey.passcodeKey, with: newPassword, deviceKey: deviceKey.key,
        rounds: rounds,
        progress: progress)
    }
    try rewrite(with: keybag, oldKey: oldKey, in: session)
    let name = UntrustedText.escaped(loaded.name)
    try command.report(
      loaded, keybag,
      doneSentence: "Encrypted \(name) with the new password\(command.change.ending(for: loaded.name))."
        + "\(isProven ? "" : unprovenKeySentence) Other copies still have no password.",
      dryRunSentence: "Would encrypt \(name) with the new password.", isKeyProven: isProven, in: session)
  }

  /// Removes the backup's password.
  func removePassword(in session: Session) throws {
    try requireDeviceKeybag()
    try checkFolderCanBeReplaced()
    let candidate = try confirmation.availableKey(to: "remove the password of")
    let oldKey = try unlocker.key(command.password)
    let (deviceKey, isProven) = try confirmation.confirm(candidate, with: oldKey)
    let keybag: Keybag
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.removingPassword(
        loaded.archive.keybag, passcodeKey: oldKey.passcodeKey, deviceKey: deviceKey.key)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    try rewrite(with: keybag, oldKey: oldKey, in: session)
    let name = UntrustedText.escaped(loaded.name)
    let device = loaded.archive.device.name.map { UntrustedText.escaped($0) } ?? "the source device"
    if deviceKey.isPublished, let sourceDevice = deviceKey.virtualDeviceName {
      session.warnAboutPublishedKey(
        of: sourceDevice, "anyone can decrypt the keychain in \(loaded.name) without its password")
    }
    var consequence = ""
    if !isProven {
      consequence = unprovenKeySentence
    } else if !deviceKey.isPublished {
      consequence = " From now on, only \(device) can decrypt the keychain in this backup."
    }
    try command.report(
      loaded, keybag,
      doneSentence: "Removed the password of \(name)\(command.change.ending(for: loaded.name)).\(consequence)",
      dryRunSentence: "Would remove the password of \(name).", isKeyProven: isProven, in: session)
  }

  /// The sentence that warns after a backup was written with a device key that no item confirms.
  private var unprovenKeySentence: String {
    " No item confirms the device key that was used. If it is the wrong one, no device can decrypt the keychain in this "
      + "backup."
  }

  /// Rejects a backup that no device wrote, because rewriting its keybag would make it look genuine.
  private func requireDeviceKeybag() throws(CommandError) {
    guard let unbound = loaded.archive.unboundClassKeys else { return }
    throw CommandError(backup: KeyhaulError(unbound), name: loaded.name)
  }

  /// Rejects a change in place of a folder that contains unrelated files, because the whole folder would be replaced.
  private func checkFolderCanBeReplaced() throws(CommandError) {
    guard PathContent(of: path) == .directory, command.change.output == nil else { return }
    try BackupOutput.requireOnlyBackup(in: path, named: loaded.name)
  }

  private func rewrite(
    with keybag: Keybag, oldKey: BackupKey, in session: Session
  ) throws {
    guard !command.dryRun.isOn else { return }
    let keys = try unlocker.classKeys(with: oldKey)
    let state = command.noPassword ? "no longer has a password" : "has the new password"
    let change = command.change.committedChange(inPlace: CommittedChange("\(loaded.name) \(state)", at: loaded.name))
    let rewritten = try session.rewriting(loaded, to: command.change.output, change) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.reencrypt(loaded.archive, at: path, with: keybag, keys: keys, to: target, progress: progress)
    }
    session.warnIfOldBackupRemains(rewritten.leftover)
    if let first = rewritten.unrelatedFiles.first {
      session.warn(
        "\(HumanReadable.count(rewritten.unrelatedFiles.count, "payload")) left out",
        why: "not listed in the manifest: \(rewritten.unrelatedFiles.count == 1 ? "" : "the first is ")\(first)")
    }
  }
}
