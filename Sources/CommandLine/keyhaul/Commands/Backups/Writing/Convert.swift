import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul convert`: copies a backup as a folder, as one file, or decrypted.
struct Convert: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Pack, unpack or decrypt a backup into a copy",
    usage: "keyhaul convert ARCHIVE -o ARCHIVE [--decrypted [--reveal]]",
    examples: [
      "keyhaul convert family.backup -o family.tar.zst",
      "keyhaul convert family.tar.zst -o family/",
      "keyhaul convert family.backup --decrypted -o readable/",
    ],
    flags: ["--output", "--decrypted", "--reveal", "--password-file", "--dry-run", "--yes", "--json"])
  static let configuration = makeConfiguration(named: "convert")

  @Argument(
    help: "The backup: a folder or a file. Only --decrypted needs its password.", completion: .file())
  var archive: String
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(BackupOutput.help, valueName: "archive"),
    completion: .file())
  var output: String
  @Flag(
    help:
      "Decrypt the manifest and the files, for other programs. Keychain items stay encrypted with the password."
  )
  var decrypted = false
  @Flag(help: "With --decrypted, also write the items with their secrets, in plain text, next to the copy.")
  var reveal = false
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    try BackupOutput.check(output, differsFrom: accessOptions.files, in: session)
    try checkFlags()
    let backup = try SourceResolver(session).backup(archive)
    let path = try backup.requirePath(for: "convert")
    let loaded = try backup.open(storage: decryption.storage, for: .copying, in: session)
    if output != "-" { try session.requireOutput(output, differsFrom: [path]) }
    if !decrypted, let copy = try existingCopy(of: loaded, at: path, in: session) {
      session.warn(aboutUnrelatedFiles: copy.unrelatedFiles)
      try report(loaded, copy: copy, alreadyExists: true, in: session)
      return status(of: loaded, without: copy.unrelatedFiles)
    }
    let (destination, replaces) = try BackupOutput.destination(
      output, deviceIdentifier: loaded.archive.device.identifier, asks: !dryRun.isOn, in: session)
    if decrypted {
      return try DecryptedConversion(self, loaded, path, to: destination, replaces: replaces).run(in: session)
    }
    guard !dryRun.isOn else {
      try report(loaded, copy: nil, in: session)
      session.reportDryRun(dryRun)
      return .ok
    }
    let copy = try writeCopy(of: loaded, at: path, to: destination, replaces: replaces, in: session)
    session.warnIfOldBackupRemains(copy.leftover)
    session.warn(aboutUnrelatedFiles: copy.unrelatedFiles)
    try report(loaded, copy: copy, in: session)
    return status(of: loaded, without: copy.unrelatedFiles)
  }

  /// Copies the backup to the output, which may be standard output.
  private func writeCopy(
    of loaded: LoadedBackup, at path: String, to destination: BackupDestination, replaces: Bool, in session: Session
  ) throws(CommandError) -> RewrittenBackup {
    let change =
      output == "-"
      ? CommittedChange("\(loaded.name) was copied to standard output")
      : CommittedChange("\(loaded.name) was copied to \(output)", at: output)
    return try session.rewriting(loaded, to: output, titled: "Copying \(loaded.name)", phase: "copy", change) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.convert(loaded.archive, at: path, to: destination, replace: replaces, progress: progress)
    }
  }

  /// Returns the exit status. It is `.partial` if a journal that may change the manifest was not copied, because the copy
  /// does not show that the journal existed.
  private func status(of loaded: LoadedBackup, without unrelatedFiles: [String]) -> CommandExitStatus {
    let losesJournal = loaded.archive.findings.contains { finding in
      finding.kind == .listJournalUnread && unrelatedFiles.contains(finding.file)
    }
    return losesJournal ? .partial : .ok
  }

  /// Returns the existing copy at the output if it is identical to the copy that the command would write; otherwise
  /// `nil`.
  private func existingCopy(
    of loaded: LoadedBackup, at path: String, in session: Session
  ) throws(CommandError) -> RewrittenBackup? {
    let destination = BackupDestination(path: output)
    guard output != "-",
      let existing = BackupOutput.existingPath(at: destination, deviceIdentifier: loaded.archive.device.identifier)
    else { return nil }
    if !dryRun.isOn { try session.lock(existing, named: existing, for: .writing) }
    do throws(KeyhaulError) {
      let copy = try session.progress("Comparing \(loaded.name) with \(existing)", phase: "compare") {
        (report) throws(KeyhaulError) in
        try BackupRewriter().existingCopy(
          of: loaded.archive, at: path, in: existing, as: destination, progress: report.updateUnlessInterrupted)
      }
      if copy != nil, !dryRun.isOn {
        let isDirectory = if case .directory = destination { true } else { false }
        BackupRewriter().removeLeftovers(at: existing, isDirectory: isDirectory)
      }
      return copy
    } catch {
      try Interruption.check()
      throw CommandError(backup: error, name: loaded.name)
    }
  }

  /// Rejects flags that apply only to a decrypted copy.
  private func checkFlags() throws(CommandError) {
    guard !decrypted else { return }
    let givenFlags = [
      reveal ? "--reveal" : nil, password.isGiven ? "a password" : nil,
      try decryption.deviceKeySource() != nil ? "a device key" : nil,
      decryption.hasIterationLimit ? "--max-rounds" : nil,
    ].compactMap(\.self)
    guard let first = givenFlags.first else { return }
    throw .usage(
      "\(first) applies only to a decrypted copy",
      why: "a packed copy keeps every stored byte", try: "--decrypted, or leave it out"
    )
  }

  /// Whether the output is a tar although its name does not say so.
  private var writesTarUnderAnotherName: Bool {
    guard output != "-", case .file(let path, .tar) = BackupDestination(path: output) else { return false }
    return !path.lowercased().hasSuffix(".tar")
  }

  /// Prints the result.
  ///
  /// - Parameters:
  ///   - loaded: The backup.
  ///   - copy: The written or existing copy; `nil` in a dry run that would write a copy.
  ///   - alreadyExists: Whether an identical copy already existed.
  private func report(
    _ loaded: LoadedBackup, copy: RewrittenBackup?, alreadyExists: Bool = false, in session: Session
  ) throws(CommandError) {
    if session.isJSON {
      let document = ConversionDocument(
        of: loaded.name, digest: loaded.archive.digest, to: output, copy: copy, isDryRun: dryRun.isOn)
      return try session.writeDocument(document.json(isWritten: !alreadyExists && !dryRun.isOn))
    }
    let location = output == "-" ? "standard output" : UntrustedText.escaped(copy?.path ?? output)
    let formatNote = writesTarUnderAnotherName ? ", a tar" : ""
    let sizeNote =
      copy.map { " (\(HumanReadable.count($0.fileCount, "file")), \(HumanReadable.bytes($0.byteCount)))" } ?? ""
    if alreadyExists {
      return try session.announce(
        "Nothing to do: \(location) already contains the same files as \(UntrustedText.escaped(loaded.name)).")
    }
    let sentence =
      "\(copy == nil ? "Would copy" : "Copied") \(UntrustedText.escaped(loaded.name)) to \(location)\(formatNote)\(sizeNote)."
    // The backup itself is on standard output.
    if output == "-" { session.info(sentence) } else { try session.announce(sentence) }
    session.debug("  \(loaded.archive.digest)", level: 2)
  }
}
