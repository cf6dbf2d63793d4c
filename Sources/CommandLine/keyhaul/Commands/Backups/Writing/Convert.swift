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
      try report(loaded, outcome: copy, alreadyExists: true, in: session)
      return status(of: loaded, without: copy.unrelatedFiles)
    }
    let (destination, replaces) = try BackupOutput.destination(
      output, deviceIdentifier: loaded.archive.device.identifier, asks: !dryRun.isOn, in: session)
    if decrypted {
      return try DecryptedConversion(self, loaded, path, to: destination, replaces: replaces).run(in: session)
    }
    guard !dryRun.isOn else {
      try report(loaded, outcome: nil, in: session)
      session.reportDryRun(dryRun)
      return .ok
    }
    let change =
      output == "-"
      ? CommittedChange("\(loaded.name) was copied to standard output")
      : CommittedChange(
        "\(loaded.name) was copied to \(output)", inspectCommand: "keyhaul inspect \(ShellQuoting.quote(output))")
    let outcome = try session.rewriting(loaded, to: output, titled: "Copying \(loaded.name)", phase: "copy", change) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.convert(loaded.archive, at: path, to: destination, replace: replaces, progress: progress)
    }
    session.warnIfOldBackupRemains(outcome.leftover)
    session.warn(aboutUnrelatedFiles: outcome.unrelatedFiles)
    try report(loaded, outcome: outcome, in: session)
    return status(of: loaded, without: outcome.unrelatedFiles)
  }

  /// Returns the exit status. It is partial if a journal that may change the manifest is not in the copy, because the
  /// copy does not show that there was one.
  private func status(of loaded: LoadedBackup, without unrelatedFiles: [String]) -> CommandExitStatus {
    let losesJournal = loaded.archive.findings.contains { finding in
      finding.kind == .listJournalUnread && unrelatedFiles.contains(finding.file)
    }
    return losesJournal ? .partial : .ok
  }

  /// Returns the existing copy at the output if it is identical to the one that would be written; otherwise `nil`.
  private func existingCopy(
    of loaded: LoadedBackup, at path: String, in session: Session
  ) throws(CommandError) -> RewrittenBackup? {
    let destination = BackupDestination(path: output)
    guard output != "-",
      let existing = BackupOutput.existing(at: destination, deviceIdentifier: loaded.archive.device.identifier)
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
    let given = [
      reveal ? "--reveal" : nil, password.isGiven ? "a password" : nil,
      try decryption.deviceKeySource() != nil ? "a device key" : nil,
      decryption.hasIterationLimit ? "--max-rounds" : nil,
    ].compactMap(\.self)
    guard let first = given.first else { return }
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
  /// - Parameter alreadyExists: Whether an identical copy already existed.
  private func report(
    _ loaded: LoadedBackup, outcome: RewrittenBackup?, alreadyExists: Bool = false, in session: Session
  ) throws(CommandError) {
    if session.isJSON {
      let document = ConversionDocument(
        of: loaded.name, digest: loaded.archive.digest, to: output, copy: outcome, isDryRun: dryRun.isOn)
      return try session.writeDocument(document.json(isWritten: !alreadyExists && !dryRun.isOn))
    }
    let location = output == "-" ? "standard output" : UntrustedText.escaped(outcome?.path ?? output)
    let kind = writesTarUnderAnotherName ? ", a tar" : ""
    let size =
      outcome.map { " (\(HumanReadable.count($0.fileCount, "file")), \(HumanReadable.bytes($0.byteCount)))" } ?? ""
    if alreadyExists {
      return try session.announce(
        "Nothing to do: \(location) already contains the same files as \(UntrustedText.escaped(loaded.name)).")
    }
    let sentence =
      "\(outcome == nil ? "Would copy" : "Copied") \(UntrustedText.escaped(loaded.name)) to \(location)\(kind)\(size)."
    // The backup itself is on standard output.
    if output == "-" { session.info(sentence) } else { try session.announce(sentence) }
    session.debug("  \(loaded.archive.digest)", level: 2)
  }
}

/// `keyhaul convert --decrypted`: writes an unencrypted copy of a backup, for other programs.
struct DecryptedConversion {
  private let command: Convert
  private let loaded: LoadedBackup
  private let path: String
  private let destination: BackupDestination
  private let replaces: Bool

  /// Checks that the backup can be decrypted, before asking for a password.
  ///
  /// - Throws: `.usage` if it is not encrypted; an error of the library if it cannot be decrypted into a copy.
  init(
    _ command: Convert, _ loaded: LoadedBackup, _ path: String, to destination: BackupDestination, replaces: Bool
  ) throws(CommandError) {
    guard loaded.archive.areFilesEncrypted else {
      throw .usage(
        "\(loaded.name) is not encrypted", why: "there is nothing to decrypt", try: "leave --decrypted out")
    }
    guard !command.reveal || command.output != "-" else {
      throw .usage(
        "--reveal and -o - cannot be used together",
        why: "the items are written next to the copy", try: "-o FILE")
    }
    do throws(KeyhaulError) {
      try BackupRewriter.checkReencryption(of: loaded.archive)
    } catch {
      throw CommandError(
        CommandExitStatus(error.category), "\(loaded.name) cannot be decrypted into a copy", why: error.reason,
        try: "keyhaul export \(ShellQuoting.quote(loaded.name)) --files DIR writes its files")
    }
    self.command = command
    self.loaded = loaded
    self.path = path
    self.destination = destination
    self.replaces = replaces
  }

  func run(in session: Session) throws -> CommandExitStatus {
    if command.reveal { try session.prepareOutput(itemsPath, inputs: [path], asks: !command.dryRun.isOn) }
    let unlocker = BackupUnlocker(loaded, command.decryption, in: session)
    let hardware = try unlocker.hardwareKey()
    let key = try unlocker.key(command.password)
    let keys = try unlocker.classKeys(with: key)
    // The copy would not show damage of the original.
    let damageOfOriginal = try damage(with: key)
    for damage in damageOfOriginal {
      session.warn(
        "\(loaded.name) is damaged, and a decrypted copy would hide the damage", why: damage.description,
        try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) shows what can be saved", ignoresQuiet: true)
    }
    guard !command.dryRun.isOn else {
      try report(nil, in: session)
      return damageOfOriginal.isEmpty ? .ok : .partial
    }
    let written = try decrypt(keys, in: session)
    if command.reveal, loaded.archive.hasKeychain {
      let reader = try unlocker.reader(with: key, hardware: hardware, for: .exporting)
      try DecryptedItemsDocument.write(reader, of: loaded, to: itemsPath, command.common, in: session)
    }
    try report(written, in: session)
    warn(about: written, in: session)
    return written.isComplete && damageOfOriginal.isEmpty ? .ok : .partial
  }

  /// Returns the damage of the original.
  private func damage(with key: BackupKey) throws(CommandError) -> [BackupDamage] {
    do throws(KeyhaulError) {
      return try loaded.archive.open(with: key, for: .reading).damage
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
  }

  /// The path of the file with the items. It is next to the copy, because it is not part of a backup.
  private var itemsPath: String {
    var name = Substring(command.output)
    while name.count > 1, name.hasSuffix("/") { name = name.dropLast() }
    return "\(name).keychain.json"
  }

  private func decrypt(_ keys: ClassKeys, in session: Session) throws(CommandError) -> DecryptedBackup {
    let change = CommittedChange("\(loaded.name) was copied unencrypted to \(command.output)")
    return try session.rewriting(
      loaded, to: command.output, titled: "Decrypting \(loaded.name)", phase: "copy", unit: .byte, change
    ) { (rewriter, progress) throws(KeyhaulError) in
      try rewriter.decrypt(
        loaded.archive, at: path, to: destination, keys: keys, replace: replaces, progress: progress)
    }
  }

  // MARK: The result

  private func report(_ written: DecryptedBackup?, in session: Session) throws(CommandError) {
    let copy = written?.copy
    if session.isJSON {
      let document = ConversionDocument(
        of: loaded.name, digest: loaded.archive.digest, to: command.output, copy: copy, isDryRun: command.dryRun.isOn)
      return try session.writeDocument(
        document.json(
          decrypting: written, differing: differing(written), items: command.reveal ? itemsPath : nil))
    }
    let location = command.output == "-" ? "standard output" : UntrustedText.escaped(copy?.path ?? command.output)
    let size =
      copy.map { " (\(HumanReadable.count($0.fileCount, "file")), \(HumanReadable.bytes($0.byteCount)))" } ?? ""
    let did = written == nil ? "Would copy" : "Copied"
    let sentence = "\(did) \(UntrustedText.escaped(loaded.name)) unencrypted to \(location)\(size)."
    if command.output == "-" { session.info(sentence) } else { try session.announce(sentence) }
    session.info(
      "Anyone can read the copy's files. Its keychain items are still encrypted with the password"
        + (command.reveal ? ", but \(itemsPath) contains them in plain text." : "."))
    session.reportDryRun(command.dryRun)
  }

  private func warn(about written: DecryptedBackup, in session: Session) {
    session.warnIfOldBackupRemains(written.copy.leftover)
    if let first = written.copy.unrelatedFiles.first {
      session.warn(
        "\(HumanReadable.count(written.copy.unrelatedFiles.count, "file")) not copied",
        why:
          "not listed in the manifest; the first: \(first)"
      )
    }
    if let first = written.faults.first {
      session.warn(
        "\(HumanReadable.count(written.faults.count, "file")) could not be read, and \(written.faults.count == 1 ? "is" : "are") not in the copy",
        why: "the first: \(first.error.reason)", try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) lists them",
        ignoresQuiet: true)
    }
    warn(aboutDiffering: differing(written).map(Self.name), in: session)
    loaded.warn(aboutRowsWithoutIdentifier: written.rowWithoutIdentifierCount, in: session)
  }

  /// Returns the files that differ from their digest, ordered by name.
  private func differing(_ written: DecryptedBackup?) -> [ListedFile] {
    (written?.differing ?? []).sorted { Self.name(of: $0) < Self.name(of: $1) }
  }

  private static func name(of file: ListedFile) -> String {
    guard let domain = file.domain, let path = file.relativePath else { return file.fileIdentifier }
    return "\(domain)/\(path)"
  }

  private func warn(aboutDiffering names: [String], in session: Session) {
    guard !names.isEmpty else { return }
    session.warn(
      "\(HumanReadable.count(names.count, "file")) copied as "
        + "\(names.count == 1 ? "it is, although it is" : "they are, although they are") not what was backed up",
      why: "the digest in the manifest or in the seal differs; the copy is sealed in its current state",
      try: "another copy of the backup", ignoresQuiet: true)
    let shown = command.common.verbose > 0 ? names[...] : names.prefix(VerificationReport.defaultFaultLimit)
    for name in shown { session.info("  \(UntrustedText.quoted(name))") }
    if shown.count < names.count {
      session.info("  \(HumanReadable.grouped(names.count - shown.count)) more (-v lists all)")
    }
  }
}
