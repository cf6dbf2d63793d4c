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
  static let configuration = described(as: "rekey")

  @Argument(help: "The backup: a folder or a file.", completion: .file()) var archive: String
  @Flag(help: "Remove the password. Afterwards, only the source device can decrypt the keychain.")
  var noPassword = false
  @Option(
    help: ArgumentHelp("The number of PBKDF2 iterations (default: unchanged).", valueName: "n"),
    transform: RoundCount.parseWritten)
  var rounds: RoundCount?
  @Flag(
    help: ArgumentHelp(
      "Use a device key that no item of the backup confirms. (--yes does not confirm this.)",
      discussion: "If the key is wrong, no device can decrypt the backup's keychain afterwards."))
  var acceptUnprovenKey = false
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "The new password") var newPassword: NewPasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup(title: "Where the changed backup goes") var change: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// What becomes of the password.
  enum Change {
    case another, first, none
  }

  func perform(in session: Session) throws -> CommandStatus {
    // Beside a link stands another file than beside what it points to.
    let found = try ArgumentFinder(session).archive(archive)
    let path = URL(filePath: try found.requirePath(for: "rekey")).resolvingSymlinksInPath().path
    try change.check(differsFrom: found.files + [password.file, newPassword.file, opening.deviceKeyFile], in: session)
    let isRead = dryRun.isOn || change.output != nil
    let named = try found.open(isRead ? .reading : .writing, storage: opening.storage, in: session)
    do throws(KeyhaulError) {
      try named.archive.require(.rewriting)
      try BackupRewriter.checkRekeying(of: named.archive)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    let kind = try kind(of: named)
    let target = try change.target(for: named, isRehearsed: dryRun.isOn, in: session)
    switch kind {
    case .another: try changePassword(of: named, at: path, to: target, in: session)
    case .first: try HardwareRekey(self, named, path, target, in: session).protect(in: session)
    case .none: try HardwareRekey(self, named, path, target, in: session).unprotect(in: session)
    }
    return .ok
  }

  private func kind(of named: NamedArchive) throws(CommandFailure) -> Change {
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
          why: "its keybag has no second iteration count, as in iOS 10.1 and earlier", try: "leave --rounds out")
      }
      return .another
    }
  }

  /// Refuses a backup whose files cannot be encrypted or decrypted, before anybody is asked for the key of its device.
  private func requireReencryptable(_ named: NamedArchive, _ message: String) throws(CommandFailure) {
    do throws(KeyhaulError) {
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(
        CommandStatus(error.category), message, why: error.reason,
        try: named.archive.isEncrypted
          ? "keyhaul rekey \(ShellQuoting.quote(named.name)) gives it another password"
          : "make a new backup of the device, with a password")
    }
  }

  // MARK: Another password

  /// A password that opens the backup, and the key that follows from it.
  private struct ProvenPassword: ~Copyable {
    let password: Secret
    let key: BackupKey
  }

  private func changePassword(
    of named: NamedArchive, at path: String, to target: BackupRewriter.Target, in session: Session
  ) throws {
    if acceptUnprovenKey {
      throw CommandFailure.usage(
        "--accept-unproven-key is not used to change the password of \(named.name)",
        why: "only its class keys are wrapped again, without a device key", try: "leave --accept-unproven-key out")
    }
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
    if isSame, change.output == nil, !BackupRewriter.hasUnfinishedSeal(named.archive),
      rounds == nil || rounds.map({ Int($0.value) }) == keybag.secondRound.map({ Int($0.rounds) })
    {
      if !dryRun.isOn { BackupRewriter().removeLeftovers(of: named.archive, at: path) }
      let sentence = "Nothing to do: \(UntrustedText.escaped(named.name)) already has this password."
      return try report(named, keybag, did: sentence, would: sentence, isWritten: false, in: session)
    }
    let changed = try unlocker.deriving(rounds: count) { (progress) throws(DataProtectionError) in
      try renewed.rewrapped(fromPasscodeKey: old.key.passcodeKey, to: new, progress: progress)
    }
    if !dryRun.isOn {
      let keys = try unlocker.classKeys(with: old.key)
      let done = change.done(Self.done("\(named.name) has the new password", named))
      let copy = try session.rewriting(named, to: change.output, done) {
        (rewriter, progress) throws(KeyhaulError) -> RewrittenBackup? in
        switch target {
        case .inPlace:
          try rewriter.replaceKeybag(of: named.archive, at: path, with: changed, keys: keys, progress: progress)
          return nil
        case .copy(let destination, let replace):
          return try rewriter.copy(
            named.archive, at: path, to: destination, replace: replace, with: changed, keys: keys, progress: progress)
        }
      }
      session.settleReplaced(copy?.leftover)
      session.warn(ofForeignFiles: copy?.unrelatedFiles ?? [])
    }
    try report(
      named, changed,
      did: "Rekeyed \(UntrustedText.escaped(named.name))\(change.ending(for: named.name)). "
        + (isSame
          ? "Its password has not changed; its iteration count has."
          : "The old password no longer works for this copy. Other copies still use it."),
      would: "Would rekey \(UntrustedText.escaped(named.name)).",
      in: session)
  }

  /// Refuses a list of files that is not what its device wrote. One that cannot be read at all is a loss to warn of.
  private func requireSoundList(of named: NamedArchive, keys: ClassKeys) throws(CommandFailure) {
    guard let list = try? named.archive.fileList(with: keys),
      let finding = list.findings.first(where: { $0.blocks(.rewriting) })
    else { return }
    throw CommandFailure(archive: finding.refusal, name: named.name)
  }

  /// Another password heals nothing.
  private func warnOfLosses(of named: NamedArchive, keys: ClassKeys, in session: Session) {
    for loss in named.archive.visibleLosses(with: keys) {
      session.warn(
        "\(named.name) is damaged; changing the password does not repair it", why: loss,
        try: "keyhaul verify \(ShellQuoting.quote(named.name)) shows what can be saved")
    }
  }

  static func done(_ what: String, _ named: NamedArchive) -> DoneChange {
    DoneChange(what, look: "keyhaul inspect \(ShellQuoting.quote(named.name))")
  }

  // MARK: The report

  /// - Parameter isKeyProven: Whether an item confirms the device key; `nil` if none was used.
  func report(
    _ named: NamedArchive, _ keybag: Keybag, did: String, would: String, isWritten: Bool = true,
    isKeyProven: Bool? = nil, in session: Session
  ) throws(CommandFailure) {
    if session.isJSON {
      let document = RekeyDocument(
        of: named.name, keybag, isEncrypted: !noPassword, isWritten: isWritten && !dryRun.isOn, isDryRun: dryRun.isOn,
        isKeyProven: isKeyProven)
      return try session.answer(document.json.adding(change.members))
    }
    try session.announce(dryRun.isOn ? would : did)
    session.noteDryRun(dryRun)
  }
}

/// Sets a backup's password or takes it off: both need the key of the hardware that made it, and change every file.
struct HardwareRekey {
  private let verb: Rekey
  private let named: NamedArchive
  private let unlocker: ArchiveUnlocker
  private let path: String
  private let target: BackupRewriter.Target

  init(_ verb: Rekey, _ named: NamedArchive, _ path: String, _ target: BackupRewriter.Target, in session: Session) {
    self.verb = verb
    self.named = named
    unlocker = ArchiveUnlocker(named, verb.opening, in: session)
    self.path = path
    self.target = target
  }

  func protect(in session: Session) throws {
    try requireBound()
    try requireReplaceable()
    let old = try unlocker.key(verb.password, needlessPassword: "--new-password-file with the new password")
    let candidate = try hardwareKey(to: "set a password on")
    let (hardware, isProven) = try accepted(candidate, old, in: session)
    let new = try session.password(verb.newPassword, of: named.name)
    let rounds = verb.rounds?.value ?? BackupKeybag.standardRounds
    let keybag = try unlocker.deriving(rounds: rounds + Int(BackupKeybag.lastRounds)) {
      (progress) throws(DataProtectionError) in
      try BackupKeybag.addingPassword(
        named.archive.keybag, passcodeKey: old.passcodeKey, with: new, deviceKey: hardware.key, rounds: rounds,
        progress: progress)
    }
    try rewrite(with: keybag, old, in: session)
    let name = UntrustedText.escaped(named.name)
    try verb.report(
      named, keybag,
      did: "Encrypted \(name) with the new password\(verb.change.ending(for: named.name))."
        + "\(isProven ? "" : unprovenKeySentence) "
        + "Other copies still have no password.",
      would: "Would encrypt \(name) with the new password.", isKeyProven: isProven, in: session)
  }

  func unprotect(in session: Session) throws {
    try requireBound()
    try requireReplaceable()
    let candidate = try hardwareKey(to: "remove the password of")
    let old = try unlocker.key(verb.password)
    let (hardware, isProven) = try accepted(candidate, old, in: session)
    let keybag: Keybag
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.removingPassword(
        named.archive.keybag, passcodeKey: old.passcodeKey, deviceKey: hardware.key)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    try rewrite(with: keybag, old, in: session)
    let name = UntrustedText.escaped(named.name)
    let device = named.archive.device.name.map { UntrustedText.escaped($0) } ?? "the source device"
    if hardware.isPublished, let sourceDevice = hardware.homeDevice {
      session.warnOfPublishedKey(
        of: sourceDevice, "anyone can decrypt the keychain in \(named.name) without its password")
    }
    let reach =
      !isProven
      ? unprovenKeySentence
      : hardware.isPublished ? "" : " From now on, only \(device) can decrypt the keychain in this backup."
    try verb.report(
      named, keybag,
      did: "Removed the password of \(name)\(verb.change.ending(for: named.name)).\(reach)",
      would: "Would remove the password of \(name).", isKeyProven: isProven, in: session)
  }

  /// A warning for a backup that was written with a device key that no item confirms.
  private var unprovenKeySentence: String {
    " No item confirms the device key that was used. If it is the wrong one, no device can decrypt the keychain in this "
      + "backup."
  }

  /// Refuses a backup that no device wrote: with other keys around it, it would look like any other.
  private func requireBound() throws(CommandFailure) {
    guard let unbound = named.archive.unboundClassKeys else { return }
    throw CommandFailure(archive: KeyhaulError(unbound), name: named.name)
  }

  /// Every file changes, so that a directory is rewritten and takes the old one's place.
  private func requireReplaceable() throws(CommandFailure) {
    guard PathContent(of: path) == .directory, verb.change.output == nil else { return }
    try ArchiveOutput.requireOnlyBackup(in: path, named: named.name)
  }

  // MARK: The hardware's key

  private func hardwareKey(to action: String) throws -> HardwareKey {
    if let hardware = try unlocker.hardwareKey() { return hardware }
    // The backup's word for it: a device of that name may be there, with another key.
    let device = "the source device" + (named.archive.device.name.map { ", which calls itself \($0)" } ?? "")
    throw CommandFailure.usage(
      "cannot \(action) \(named.name) without its device's key",
      why: "without a password, the keychain's keys are wrapped with the hardware key of \(device)",
      try: "--device-key-file, or --home with the folder that contains that device")
  }

  /// Accepts a device key that decrypts an item. Any other key needs its own flag, or a yes on the terminal: no device
  /// can decrypt a backup written with a wrong key.
  ///
  /// - Returns: The key, and whether an item confirms it.
  private func accepted(
    _ hardware: HardwareKey, _ key: BackupKey, in session: Session
  ) throws -> (key: HardwareKey, isProven: Bool) {
    let opened: UnlockedBackup
    do throws(KeyhaulError) {
      opened = try named.archive.open(with: key, deviceKey: hardware.key, for: .rewriting)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    if let damage = opened.keybagDamage { throw CommandFailure.damagedKeybag(of: named.name, report: damage) }
    // Every file and its digest is rewritten, after which nothing would show it.
    if let damage = opened.damage.first {
      throw CommandFailure(
        .damaged, "\(named.name) is damaged", why: damage.description,
        try: "keyhaul verify \(ShellQuoting.quote(named.name)) shows what can be saved")
    }
    switch opened.deviceKeyVerification {
    case .proven:
      unlocker.tell(ofProven: hardware)
      return (hardware, true)
    case .divided(let unproven):
      let classes = unproven.map { String($0.rawValue) }
      throw CommandFailure(
        .refused, "Keyhaul cannot confirm every class key of \(named.name)",
        why:
          "the device's hardware key decrypts some items, but none of class \(HumanReadable.list(classes)); with a wrong "
          + "key, those items would be lost for good",
        try: "another copy")
    case .foreign(let itemCount):
      if let other = hardware.otherwise {
        unlocker.warnOfForeignKey()
        return try accepted(other, key, in: session)
      }
      throw CommandFailure(
        .refused, "this is not the hardware key of \(named.name)'s source device",
        why: "it decrypts none of the \(HumanReadable.count(itemCount, "item")) that need such a key",
        try: "the 0x835 key of that device")
    case .unshown, .noItems:
      try agree(toUnproven: hardware, hasItems: !opened.items.isEmpty, in: session)
      return (hardware, false)
    }
  }

  /// - Throws: `.refused` if the flag is missing and Keyhaul cannot ask; `.failed` if the user answers no.
  private func agree(toUnproven hardware: HardwareKey, hasItems: Bool, in session: Session) throws(CommandFailure) {
    guard !verb.acceptUnprovenKey else { return }
    let origin = hardware.homeDevice.map { "the key of \($0)" } ?? "the given device key"
    let fact = hasItems ? "no item in it needs a device key" : "it has no items"
    guard let terminal = session.terminal() else {
      throw CommandFailure(
        .refused, "nothing confirms the device key for \(named.name)",
        why: "\(fact), so Keyhaul cannot check \(origin); with a wrong key, no device could decrypt the result",
        try: "--accept-unproven-key, if you are sure that the key is right")
    }
    try session.ask(
      "Nothing confirms \(origin): \(fact). If the key is wrong, no device can decrypt \(named.name) afterwards. Use it "
        + "anyway?", on: terminal)
  }

  // MARK: Writing

  private func rewrite(
    with keybag: Keybag, _ key: BackupKey, in session: Session
  ) throws {
    guard !verb.dryRun.isOn else { return }
    let keys = try unlocker.classKeys(with: key)
    let what = verb.noPassword ? "no longer has a password" : "has the new password"
    let done = verb.change.done(Rekey.done("\(named.name) \(what)", named))
    let outcome = try session.rewriting(named, to: verb.change.output, done) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.reencrypt(named.archive, at: path, with: keybag, keys: keys, to: target, progress: progress)
    }
    session.settleReplaced(outcome.leftover)
    if let first = outcome.unrelatedFiles.first {
      session.warn(
        "\(HumanReadable.count(outcome.unrelatedFiles.count, "payload")) left out",
        why: "not listed in the manifest: \(outcome.unrelatedFiles.count == 1 ? "" : "the first is ")\(first)")
    }
  }
}

/// The keybag of a backup with new salts, for a password whose key is derived beside the old one's where it is available by
/// then.
final class RenewedKeybag {
  private let keybag: Keybag
  private let name: String
  private let limit: Int
  private var known: SharedPassword?
  private var key: BackgroundThread?

  /// - Parameters:
  ///   - rounds: Of the slow round; `nil` keeps the keybag's.
  ///   - limit: The most rounds to accept.
  init(of named: NamedArchive, rounds: Int?, acceptingAtMost limit: Int) throws(CommandFailure) {
    name = named.name
    self.limit = limit
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.resalted(named.archive.keybag, rounds: rounds)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// Begins to derive the new password's key; a second time it has begun already.
  func begin(_ read: () throws(CommandFailure) -> Secret) throws(CommandFailure) {
    guard known == nil else { return }
    let password = try password(read)
    key = password.keys.prefetchKey(of: keybag, password: password.held, acceptingAtMost: limit) {
      Interruption.pending == nil
    }
  }

  /// The new password, read where it was not yet.
  func password(_ read: () throws(CommandFailure) -> Secret) throws(CommandFailure) -> SharedPassword {
    if let known { return known }
    let password = SharedPassword(try read(), from: name)
    known = password
    return password
  }

  /// The class keys under the new password.
  func rewrapped(
    fromPasscodeKey old: borrowing Secret, to new: SharedPassword, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag {
    try BackupKeybag.rewrap(
      keybag, fromPasscodeKey: old, to: new.held.secret, acceptingAtMost: limit, remembering: new.keys,
      progress: progress)
  }
}
