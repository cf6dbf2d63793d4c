import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul seal`: adds a seal to a backup that another program wrote.
struct Seal: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Make later changes to a backup detectable",
    usage: "keyhaul seal ARCHIVE",
    examples: ["keyhaul seal family.backup", "keyhaul seal family.backup --password-file ~/.old"],
    flags: ["--password-file", "--dry-run", "--json"])
  static let configuration = makeConfiguration(named: "seal")

  @Argument(
    help: ArgumentHelp(
      "The backup to seal: a folder or a file. (Backups that Keyhaul writes are already "
        + "sealed.)"), completion: .file())
  var archive: String
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    // The seal is written next to the file that a link points to, not next to the link.
    let backup = try SourceResolver(session).backup(archive)
    let path = URL(filePath: try backup.requirePath(for: "seal")).resolvingSymlinksInPath().path
    // Sealing has the same requirements as copying.
    let loaded = try backup.open(
      dryRun.isOn ? .reading : .writing, storage: decryption.storage, for: .copying, in: session)
    if try decryption.deviceKeySource() != nil {
      throw CommandError.usage(
        "a device key is not used to seal \(loaded.name)", why: "a seal needs only the password's key",
        try: "leave the device key out")
    }
    let unlocker = BackupUnlocker(loaded, decryption, in: session)
    let key = try unlocker.key(password)
    let keys = try unlocker.classKeys(with: key)
    if let seal = loaded.archive.seal { return try keep(seal, of: loaded, keys: keys, in: session) }
    for damage in loaded.archive.visibleDamage(with: keys) {
      session.warn(
        "\(loaded.name) is damaged; sealing does not repair it", why: damage,
        try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) shows what can be saved")
    }
    guard !dryRun.isOn else {
      try report(loaded, fileCount: nil, in: session)
      session.reportDryRun(dryRun)
      return .ok
    }
    let count = try write(loaded, at: path, keys: keys, in: session)
    try report(loaded, fileCount: count, in: session)
    return .ok
  }

  private func write(
    _ loaded: LoadedBackup, at path: String, keys: ClassKeys?, in session: Session
  ) throws(CommandError) -> Int {
    // For an error after the seal is final.
    let change = CommittedChange(
      "\(loaded.name) is sealed", inspectCommand: "keyhaul verify \(ShellQuoting.quote(loaded.name))")
    return try session.rewriting(loaded, titled: "Sealing \(loaded.name)", phase: "seal", change) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.seal(loaded.archive, at: path, keys: keys, progress: progress)
    }
  }

  /// Keeps an existing seal, unless it shows that the backup has changed.
  private func keep(
    _ seal: BackupSeal, of loaded: LoadedBackup, keys: ClassKeys, in session: Session
  ) throws -> CommandExitStatus {
    var violation = seal.violations.first
    do throws(KeyhaulError) {
      if violation == nil { violation = try loaded.archive.sealViolation(with: keys) }
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    if let violation {
      throw CommandError(
        .damaged, "\(loaded.name) has changed since it was sealed",
        why: BackupFinding.sealBroken(violation).description,
        try: "another copy; to seal your own changes, first delete Keyhaul.seal")
    }
    if session.isJSON {
      try writeDocument(loaded, fileCount: seal.fileCount, isWritten: false, in: session)
    } else {
      try session.announce(
        "\(UntrustedText.escaped(loaded.name)) is already sealed. \"keyhaul verify\" compares its files with the seal.")
    }
    return .ok
  }

  private func writeDocument(
    _ loaded: LoadedBackup, fileCount: Int?, isWritten: Bool, in session: Session
  ) throws(CommandError) {
    let document = SealDocument(
      of: loaded.archive, named: loaded.name, fileCount: fileCount, isWritten: isWritten, isDryRun: dryRun.isOn)
    try session.writeDocument(document.json)
  }

  private func report(_ loaded: LoadedBackup, fileCount: Int?, in session: Session) throws(CommandError) {
    if session.isJSON {
      return try writeDocument(loaded, fileCount: fileCount, isWritten: fileCount != nil, in: session)
    }
    let name = UntrustedText.escaped(loaded.name)
    let protectionSentence =
      loaded.archive.usesKeyedSeal
      ? "The seal detects later changes, but not earlier ones."
      : "The seal detects later accidental changes, but not attacks, because no password protects it."
    guard let fileCount else { return try session.announce("Would seal \(name).") }
    try session.announce("Sealed \(name): \(HumanReadable.count(fileCount, "file")). \(protectionSentence)")
  }
}
