import ArchivedKeychain
import BackupArchive
import DataProtection
import KeychainFormats
import VirtualDevice

/// Sets a backup's password or takes it off: both need the key of the hardware that made it, and change every file.
struct HardwareRekey {
  private let verb: Rekey
  private let named: Session.NamedArchive
  private let path: String

  init(_ verb: Rekey, _ named: Session.NamedArchive, _ path: String) {
    self.verb = verb
    self.named = named
    self.path = path
  }

  func protect(in session: Session) throws {
    if verb.password.isGiven {
      session.warn(
        "\(named.name) has no password", why: "it is not encrypted; the given password was not used",
        try: "--new-password-file for the one that it gets")
    }
    let key = try hardwareKey(to: "set a password on", in: session)
    try prove(key, password: nil, in: session)
    let new = try session.password(verb.newPassword, of: named.name)
    let rounds = verb.rounds?.value ?? BackupKeybag.standardRounds
    let keybag = try derive(rounds + Int(BackupKeybag.lastRounds), in: session) {
      (progress) throws(DataProtectionError) in
      try BackupKeybag.protect(named.archive.keybag, with: new, deviceKey: key, rounds: rounds, progress: progress)
    }
    try rewrite(with: keybag, password: nil, in: session)
    let name = HostileText.shown(named.name)
    try verb.report(
      named, keybag, did: "Encrypted \(name) with the new password. Other copies of it are still without one.",
      would: "Would encrypt \(name) with the new password.", in: session)
  }

  func unprotect(in session: Session) throws {
    let key = try hardwareKey(to: "take the password off", in: session)
    let password = try session.password(verb.password, of: named.name)
    try prove(key, password: password.copy(), in: session)
    let limit = verb.opening.limit.maxRounds?.value ?? RoundLimit.standard
    let bag = named.archive.keybag
    let keybag = try derive(bag.totalRounds, in: session) { (progress) throws(DataProtectionError) in
      let fitting = try bag.fittingKey(password: password, acceptingAtMost: limit, progress: progress)
      return try BackupKeybag.unprotect(bag, passcodeKey: fitting.passcodeKey, deviceKey: key)
    }
    try rewrite(with: keybag, password: password.copy(), in: session)
    let name = HostileText.shown(named.name)
    let device = named.archive.device.name.map { HostileText.shown($0) } ?? "the device that made it"
    try verb.report(
      named, keybag,
      did: "Took the password off \(name). Its keychain opens only on \(device) from now on.",
      would: "Would take the password off \(name).", in: session)
  }

  // MARK: The hardware's key

  private func hardwareKey(to action: String, in session: Session) throws -> DeviceKey {
    if let key = try session.deviceKey(verb.opening, of: named.name) { return key }
    if let maker = session.maker(of: named.archive) { return maker.key() }
    let device = named.archive.device.name ?? "the device that made it"
    throw CommandFailure.usage(
      "cannot \(action) \(named.name) without its device's key",
      why: "without a password the keychain's keys are wrapped with the hardware key of \(device)",
      try: "--device-key-file, or --home with \(device) in it")
  }

  /// Goes on only with a key that opened an item; what a wrong one would write, no device could ever open.
  private func prove(_ key: borrowing DeviceKey, password: consuming Secret?, in session: Session) throws {
    let limit = verb.opening.limit.maxRounds?.value ?? RoundLimit.standard
    let opened: OpenedArchive
    do throws(ArchivedKeychainError) {
      opened = try session.deriving(rounds: named.archive.keybag.totalRounds) {
        (progress) throws(ArchivedKeychainError) in
        try OpenedArchive(
          named.archive, password: password, deviceKey: key.copy(), acceptingAtMost: limit, progress: progress)
      }
    } catch {
      try Interruption.check()
      guard (error.underlying as? BackupArchiveError)?.code == .noKeychain else {
        throw CommandFailure(archive: error, name: named.name)
      }
      return
    }
    if let damage = opened.keybagDamage { throw CommandFailure.damagedKeybag(of: named.name, report: damage) }
    let proofs = opened.items.compactMap(\.provesHardware)
    if proofs.contains(true) || opened.items.isEmpty { return }
    guard proofs.isEmpty else {
      throw CommandFailure(
        .refused, "this is not the key of the device that made \(named.name)",
        why: "none of \(Amounts.count(proofs.count, "item")) that need it opens with it",
        try: "the key 0x835 of that device")
    }
    try session.confirm(
      "No item of \(named.name) shows that the key is its device's. Use it all the same?",
      refusal: "using a key that no item proves")
  }

  // MARK: Writing

  private func derive(
    _ rounds: Int, in session: Session, _ body: (PasswordDerivation.Progress) throws(DataProtectionError) -> Keybag
  ) throws(CommandFailure) -> Keybag {
    do throws(DataProtectionError) {
      return try session.deriving(rounds: rounds, body)
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  private func rewrite(with keybag: Keybag, password: consuming Secret?, in session: Session) throws {
    guard !verb.dryRun.dryRun else { return }
    // Handed over inside of a closure, which a value without copies can only do out of an optional.
    var keys: ClassKeys?
    keys = try session.classKeys(of: named, password: password, deviceKey: nil, limit: verb.opening.limit.rounds)
    try Interruption.check()
    let outcome: BackupConverter.Outcome
    do throws(BackupArchiveError) {
      outcome = try session.progress("Writing \(named.name)", phase: "write") {
        (report) throws(BackupArchiveError) -> BackupConverter.Outcome in
        guard let keys = keys.take() else {
          throw BackupArchiveError(.keyUnavailable, "its class keys were used before")
        }
        return try BackupReencryption().rewrite(
          named.archive, at: path, with: keybag, keys: keys, progress: report.orInterrupted)
      }
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
    if let leftover = outcome.leftover {
      session.warn("the backup as it was is still there", why: leftover, try: "delete it")
    }
    if let first = outcome.foreignFiles.first {
      session.warn(
        "\(Amounts.count(outcome.foreignFiles.count, "payload")) left out",
        why: "the list of files does not have \(outcome.foreignFiles.count == 1 ? "" : "them, the first is ")\(first)")
    }
  }
}
