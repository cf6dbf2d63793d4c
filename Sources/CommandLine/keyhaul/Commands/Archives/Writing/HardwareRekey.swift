import KeyhaulKit

/// Sets a backup's password or takes it off: both need the key of the hardware that made it, and change every file.
struct HardwareRekey {
  private let verb: Rekey
  private let named: NamedArchive
  private let unlocker: ArchiveUnlocker
  private let path: String

  init(_ verb: Rekey, _ named: NamedArchive, _ path: String, in session: Session) {
    self.verb = verb
    self.named = named
    unlocker = ArchiveUnlocker(named, verb.opening, in: session)
    self.path = path
  }

  func protect(in session: Session) throws {
    try requireBound()
    try requireReplaceable()
    let old = try unlocker.key(verb.password, needlessPassword: "--new-password-file with the new password")
    let candidate = try hardwareKey(to: "set a password on")
    let hardware = try proven(candidate, old, in: session)
    let new = try session.password(verb.newPassword, of: named.name)
    let rounds = verb.rounds?.value ?? BackupKeybag.standardRounds
    let keybag = try unlocker.deriving(rounds: rounds + Int(BackupKeybag.lastRounds)) {
      (progress) throws(DataProtectionError) in
      try BackupKeybag.protect(
        named.archive.keybag, passcodeKey: old.passcodeKey, with: new, deviceKey: hardware.key(), rounds: rounds,
        progress: progress)
    }
    try rewrite(with: keybag, old, in: session)
    let name = HostileText.shown(named.name)
    try verb.report(
      named, keybag, did: "Encrypted \(name) with the new password. Other copies of it are still without one.",
      would: "Would encrypt \(name) with the new password.", in: session)
  }

  func unprotect(in session: Session) throws {
    try requireBound()
    try requireReplaceable()
    let candidate = try hardwareKey(to: "remove the password of")
    let old = try unlocker.key(verb.password)
    let hardware = try proven(candidate, old, in: session)
    let keybag: Keybag
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.unprotect(
        named.archive.keybag, passcodeKey: old.passcodeKey, deviceKey: hardware.key())
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    try rewrite(with: keybag, old, in: session)
    let name = HostileText.shown(named.name)
    let device = named.archive.device.name.map { HostileText.shown($0) } ?? "the source device"
    if hardware.isPublished, let maker = hardware.homeDevice {
      session.warnOfPublishedKey(of: maker, "anyone can decrypt the keychain in \(named.name) without its password")
    }
    let reach = hardware.isPublished ? "" : " From now on its keychain can be decrypted only on \(device)."
    try verb.report(
      named, keybag,
      did: "Removed the password of \(name).\(reach)",
      would: "Would remove the password of \(name).", in: session)
  }

  /// Refuses a backup that no device wrote: with other keys around it, it would look like any other.
  private func requireBound() throws(CommandFailure) {
    guard let unbound = named.archive.unboundKeychain else { return }
    throw CommandFailure(archive: ArchivedKeychainError(unbound), name: named.name)
  }

  /// Every file changes, so that a directory is rewritten and takes the old one's place.
  private func requireReplaceable() throws(CommandFailure) {
    guard PathContent(of: path) == .directory else { return }
    try ArchiveOutput.requireOnlyBackup(in: path, named: named.name)
  }

  // MARK: The hardware's key

  private func hardwareKey(to action: String) throws -> HardwareKey {
    if let hardware = try unlocker.hardwareKey() { return hardware }
    // The backup's word for it: a device of that name may be there, with another key.
    let device = "the source device" + (named.archive.device.name.map { ", which calls itself \($0)" } ?? "")
    throw CommandFailure.usage(
      "cannot \(action) \(named.name) without its device's key",
      why: "without a password the keychain's keys are wrapped with the hardware key of \(device)",
      try: "--device-key-file, or --home with the device whose key it is")
  }

  /// Goes on only with a key that opened an item; what a wrong one would write, no device could ever open.
  private func proven(
    _ hardware: HardwareKey, _ key: borrowing ArchiveKey, in session: Session
  ) throws -> HardwareKey {
    let opened: OpenedArchive
    do throws(ArchivedKeychainError) {
      opened = try OpenedArchive(named.archive, key: key, deviceKey: hardware.key(), for: .rewriting)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    if let damage = opened.keybagDamage { throw CommandFailure.damagedKeybag(of: named.name, report: damage) }
    // Every file and its digest is rewritten, after which nothing would show it.
    if let damage = opened.damage.first {
      throw CommandFailure(
        .damaged, "\(named.name) is damaged", why: damage.description,
        try: "keyhaul verify \(ShellWord.quoted(named.name)) says what can be saved")
    }
    switch opened.hardwareVerdict {
    case .proven: unlocker.tell(ofProven: hardware)
    case .noItems: break
    case .divided(let unproven):
      let classes = unproven.map { String($0.rawValue) }
      throw CommandFailure(
        .refused, "not every key of \(named.name) is known to be right",
        why: "the device's hardware key decrypts some of its items, but none of class \(Amounts.list(classes)): with a "
          + "wrong key these would be lost for good",
        try: "another copy")
    case .foreign(let itemCount):
      if let other = hardware.otherwise {
        unlocker.warnOfForeignKey()
        return try proven(other, key, in: session)
      }
      throw CommandFailure(
        .refused, "this is not the source device's key of \(named.name)",
        why: "it decrypts none of the \(Amounts.count(itemCount, "item")) that need such a key",
        try: "the key 0x835 of that device")
    case .unshown:
      try session.confirm(
        "No item of \(named.name) proves that the key belongs to its source device. Use it anyway?",
        refusal: "using a key that no item proves")
    }
    return hardware
  }

  // MARK: Writing

  private func rewrite(
    with keybag: Keybag, _ key: borrowing ArchiveKey, in session: Session
  ) throws {
    guard !verb.dryRun.isOn else { return }
    // Handed over inside of a closure, which a value without copies can only do out of an optional.
    var keys: ClassKeys?
    keys = try unlocker.classKeys(with: key)
    try Interruption.check()
    let outcome: RewrittenBackup
    do throws(BackupArchiveError) {
      outcome = try session.progress("Writing \(named.name)", phase: "write") {
        (report) throws(BackupArchiveError) -> RewrittenBackup in
        let what = verb.noPassword ? "no longer has a password" : "has the new password"
        return try session.changing(Rekey.done("\(named.name) \(what)", named)) {
          () throws(BackupArchiveError) -> RewrittenBackup in
          guard let keys = keys.take() else {
            throw BackupArchiveError(.keyUnavailable, "its class keys were used before")
          }
          return try BackupRewriter().reencrypt(
            named.archive, at: path, with: keybag, keys: keys, progress: report.orInterrupted)
        }
      }
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
    session.settleReplaced(outcome.leftover)
    if let first = outcome.foreignFiles.first {
      session.warn(
        "\(Amounts.count(outcome.foreignFiles.count, "payload")) left out",
        why: "not listed in the manifest: \(outcome.foreignFiles.count == 1 ? "" : "the first is ")\(first)")
    }
  }
}
