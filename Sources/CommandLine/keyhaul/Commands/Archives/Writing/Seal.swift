import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul seal`: a seal for a backup that another program wrote.
struct Seal: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Make later changes to a backup detectable",
    usage: "keyhaul seal ARCHIVE",
    examples: ["keyhaul seal family.backup", "keyhaul seal family.backup --password-file ~/.old"],
    flags: ["--password-file", "--dry-run", "--json"])
  static let configuration = described(as: "seal")

  @Argument(
    help: ArgumentHelp(
      "The backup to seal: a folder or a file. (Backups that Keyhaul writes are already "
        + "sealed.)"), completion: .file())
  var archive: String
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    // Beside a link stands another file than beside what it points to.
    let found = try ArgumentFinder(session).archive(archive)
    let path = URL(filePath: try found.requirePath(for: "seal")).resolvingSymlinksInPath().path
    let named = try found.open(
      dryRun.isOn ? .reading : .writing, storage: opening.storage, for: .copying, in: session)
    if try opening.deviceKeySource() != nil {
      throw CommandFailure.usage(
        "a device key is not used to seal \(named.name)", why: "a seal needs only the password's key",
        try: "leave the device key out")
    }
    let unlocker = ArchiveUnlocker(named, opening, in: session)
    let key = try unlocker.key(password, needlessPassword: nil)
    let keys = try unlocker.classKeys(with: key)
    if let seal = named.archive.seal { return try keep(seal, of: named, keys: keys, in: session) }
    for loss in named.archive.visibleLosses(with: keys) {
      session.warn(
        "\(named.name) is damaged; sealing does not repair it", why: loss,
        try: "keyhaul verify \(ShellQuoting.quote(named.name)) shows what can be saved")
    }
    guard !dryRun.isOn else {
      try report(named, fileCount: nil, in: session)
      session.noteDryRun(dryRun)
      return .ok
    }
    let count = try write(named, at: path, keys: try unlocker.classKeys(with: key), in: session)
    try report(named, fileCount: count, in: session)
    return .ok
  }

  private func write(
    _ named: NamedArchive, at path: String, keys: ClassKeys?, in session: Session
  ) throws(CommandFailure) -> Int {
    let done = DoneChange("\(named.name) is sealed", look: "keyhaul verify \(ShellQuoting.quote(named.name))")
    return try session.rewriting(named, titled: "Sealing \(named.name)", phase: "seal", done) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.seal(named.archive, at: path, keys: keys, progress: progress)
    }
  }

  /// A seal that is there stays, unless it shows at once that something was changed since.
  private func keep(
    _ seal: BackupSeal, of named: NamedArchive, keys: ClassKeys, in session: Session
  ) throws -> CommandStatus {
    var fault = seal.violations.first
    do throws(KeyhaulError) {
      if fault == nil { fault = try named.archive.sealViolation(with: keys) }
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    if let fault {
      throw CommandFailure(
        .damaged, "\(named.name) has changed since it was sealed", why: BackupFinding.sealBroken(fault).description,
        try: "another copy; to seal your own changes, first delete Keyhaul.seal")
    }
    if session.isJSON { return try answer(named, fileCount: seal.fileCount, wrote: false, in: session) }
    try session.announce(
      "\(UntrustedText.escaped(named.name)) is already sealed. \"keyhaul verify\" compares its files with the seal.")
    return .ok
  }

  private func answer(
    _ named: NamedArchive, fileCount: Int?, wrote: Bool, in session: Session
  ) throws(CommandFailure) -> CommandStatus {
    let document = SealDocument(
      of: named.archive, named: named.name, fileCount: fileCount, isWritten: wrote, isDryRun: dryRun.isOn)
    try session.answer(document.json)
    return .ok
  }

  private func report(_ named: NamedArchive, fileCount: Int?, in session: Session) throws(CommandFailure) {
    if session.isJSON {
      _ = try answer(named, fileCount: fileCount, wrote: fileCount != nil, in: session)
      return
    }
    let name = UntrustedText.escaped(named.name)
    let shows =
      named.archive.usesKeyedSeal
      ? "The seal detects later changes, but not earlier ones."
      : "The seal detects later accidental changes, but not attacks, because no password protects it."
    guard let fileCount else { return try session.announce("Would seal \(name).") }
    try session.announce("Sealed \(name): \(HumanReadable.count(fileCount, "file")). \(shows)")
  }
}
