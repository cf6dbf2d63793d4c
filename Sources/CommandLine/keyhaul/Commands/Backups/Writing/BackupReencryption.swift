import KeyhaulKit
import Reports

/// Sets or removes a backup's password. Both need the source device's key, and change every file.
struct BackupReencryption {
  private let command: Rekey
  private let loaded: LoadedBackup
  private let unlocker: BackupUnlocker
  private let path: String
  private let target: BackupRewriter.Target

  init(_ command: Rekey, _ loaded: LoadedBackup, _ path: String, _ target: BackupRewriter.Target, in session: Session) {
    self.command = command
    self.loaded = loaded
    unlocker = BackupUnlocker(loaded, command.decryption, in: session)
    self.path = path
    self.target = target
  }

  /// Encrypts the backup with a new password.
  func addPassword(in session: Session) throws {
    try requireDeviceKeybag()
    try checkFolderCanBeReplaced()
    let oldKey = try unlocker.key(command.password, unexpectedPassword: "--new-password-file with the new password")
    let candidate = try availableDeviceKey(to: "set a password on")
    let (deviceKey, isProven) = try confirm(candidate, with: oldKey, in: session)
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
    let candidate = try availableDeviceKey(to: "remove the password of")
    let oldKey = try unlocker.key(command.password)
    let (deviceKey, isProven) = try confirm(candidate, with: oldKey, in: session)
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
    if deviceKey.isPublished, let sourceDevice = deviceKey.homeDeviceName {
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

  // MARK: The device key

  /// Returns the device key to try first, with its fallbacks. Rejects the command if no device key is available.
  ///
  /// - Parameter action: The action for the message: "set a password on".
  private func availableDeviceKey(to action: String) throws -> HardwareKey {
    if let deviceKey = try unlocker.hardwareKey() { return deviceKey }
    // A device with this name may exist, but have a different key.
    let device = "the source device" + (loaded.archive.device.name.map { ", which calls itself \($0)" } ?? "")
    throw CommandError.usage(
      "cannot \(action) \(loaded.name) without its device's key",
      why: "without a password, the keychain's keys are wrapped with the hardware key of \(device)",
      try: "--device-key-file, or --home with the folder that contains that device")
  }

  /// Checks a device key, and then its fallbacks, against the items. If no item needs a device key,
  /// `--accept-unproven-key` or the user's consent is required, because no device can decrypt a backup that was written
  /// with a wrong key.
  ///
  /// - Returns: The key, and whether an item confirms it.
  private func confirm(
    _ deviceKey: HardwareKey, with key: BackupKey, in session: Session
  ) throws -> (key: HardwareKey, isProven: Bool) {
    let opened = try openIntact(with: key, deviceKey)
    switch opened.deviceKeyVerification {
    case .proven:
      unlocker.reportDeviceKeySource(deviceKey)
      return (deviceKey, true)
    case .mixed(let unprovenClasses):
      let classes = unprovenClasses.map { String($0.rawValue) }
      throw CommandError(
        .refused, "Keyhaul cannot confirm every class key of \(loaded.name)",
        why:
          "the device's hardware key decrypts some items, but none of class \(HumanReadable.list(classes)); with a wrong "
          + "key, those items would be lost for good",
        try: "another copy")
    case .foreign(let itemCount):
      if let fallback = deviceKey.fallback {
        unlocker.warnAboutKeyOfOtherDevice()
        return try confirm(fallback, with: key, in: session)
      }
      throw CommandError(
        .refused, "this is not the hardware key of \(loaded.name)'s source device",
        why: "it decrypts none of the \(HumanReadable.count(itemCount, "item")) that need such a key",
        try: "the 0x835 key of that device")
    case .unknown, .noItems:
      try confirmUnprovenKey(deviceKey, hasItems: !opened.items.isEmpty, in: session)
      return (deviceKey, false)
    }
  }

  /// Decrypts the backup. Rejects a damaged backup, because new files and digests would hide the damage.
  private func openIntact(with key: BackupKey, _ deviceKey: HardwareKey) throws(CommandError) -> UnlockedBackup {
    let opened: UnlockedBackup
    do throws(KeyhaulError) {
      opened = try loaded.archive.open(with: key, deviceKey: deviceKey.key, for: .rewriting)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    if let damage = opened.keybagDamage { throw CommandError.damagedKeybag(of: loaded.name, report: damage) }
    if let damage = opened.damage.first {
      throw CommandError(
        .damaged, "\(loaded.name) is damaged", why: damage.description,
        try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) shows what can be saved")
    }
    return opened
  }

  /// Makes sure that the user accepts a device key that no item confirms.
  ///
  /// - Throws: `.refused` if the flag is missing and Keyhaul cannot ask; `.failed` if the user does not agree.
  private func confirmUnprovenKey(_ deviceKey: HardwareKey, hasItems: Bool, in session: Session) throws(CommandError) {
    guard !command.acceptUnprovenKey else { return }
    let keyDescription = deviceKey.homeDeviceName.map { "the key of \($0)" } ?? "the given device key"
    let reason = hasItems ? "no item in it needs a device key" : "it has no items"
    guard let terminal = session.terminal() else {
      throw CommandError(
        .refused, "nothing confirms the device key for \(loaded.name)",
        why: "\(reason), so Keyhaul cannot check \(keyDescription); with a wrong key, no device could decrypt the "
          + "result",
        try: "--accept-unproven-key, if you are sure that the key is right")
    }
    try session.ask(
      "Nothing confirms \(keyDescription): \(reason). If the key is wrong, no device can decrypt \(loaded.name) "
        + "afterwards. Use it anyway?", on: terminal)
  }

  // MARK: Writing

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
