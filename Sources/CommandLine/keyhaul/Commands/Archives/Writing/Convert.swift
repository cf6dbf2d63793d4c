import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul convert`: a backup's directory into one file, or back; or a copy of it in clear.
struct Convert: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Pack, unpack or decrypt a backup into a copy",
    usage: "keyhaul convert ARCHIVE -o ARCHIVE [--decrypted [--reveal]]",
    examples: [
      "keyhaul convert family.backup -o family.tar.zst",
      "keyhaul convert family.tar.zst -o family/",
      "keyhaul convert family.backup --decrypted -o readable/",
    ],
    flags: ["--output", "--decrypted", "--reveal", "--password-file", "--dry-run", "--yes", "--json"])
  static let configuration = described(as: "convert")

  @Argument(
    help: "The backup: a folder or a file. Only --decrypted needs its password.", completion: .file())
  var archive: String
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(ArchiveOutput.help, valueName: "archive"),
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
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let unlocking = UnlockingOptions(password: password, opening: opening)
    try ArchiveOutput.check(output, differsFrom: unlocking.files, in: session)
    try checkFlags()
    let found = try ArgumentFinder(session).archive(archive)
    let path = try found.requirePath(for: "convert")
    let named = try found.open(storage: opening.storage, for: .copying, in: session)
    if output != "-" { try session.requireOutput(output, differsFrom: [path]) }
    if !decrypted, let copy = try existingCopy(of: named, at: path, in: session) {
      session.warn(ofForeignFiles: copy.unrelatedFiles)
      try report(named, outcome: copy, isThere: true, in: session)
      return status(of: named, without: copy.unrelatedFiles)
    }
    let (destination, replaces) = try ArchiveOutput.destination(
      output, deviceIdentifier: named.archive.device.identifier, asks: !dryRun.isOn, in: session)
    if decrypted {
      return try DecryptedConversion(self, named, path, to: destination, replaces: replaces).perform(in: session)
    }
    guard !dryRun.isOn else {
      try report(named, outcome: nil, in: session)
      session.noteDryRun(dryRun)
      return .ok
    }
    let done =
      output == "-"
      ? DoneChange("\(named.name) was copied to standard output")
      : DoneChange("\(named.name) was copied to \(output)", look: "keyhaul inspect \(ShellQuoting.quote(output))")
    let outcome = try session.rewriting(named, to: output, titled: "Copying \(named.name)", phase: "copy", done) {
      (rewriter, progress) throws(KeyhaulError) in
      try rewriter.convert(named.archive, at: path, to: destination, replace: replaces, progress: progress)
    }
    session.settleReplaced(outcome.leftover)
    session.warn(ofForeignFiles: outcome.unrelatedFiles)
    try report(named, outcome: outcome, in: session)
    return status(of: named, without: outcome.unrelatedFiles)
  }

  /// A copy without what may change its list of files does not show that there was any.
  private func status(of named: NamedArchive, without unrelatedFiles: [String]) -> CommandStatus {
    let losesJournal = named.archive.findings.contains { finding in
      finding.kind == .listJournalUnread && unrelatedFiles.contains(finding.place)
    }
    return losesJournal ? .partial : .ok
  }

  /// The copy that stands where this one goes, where they are the same byte for byte.
  private func existingCopy(
    of named: NamedArchive, at path: String, in session: Session
  ) throws(CommandFailure) -> RewrittenBackup? {
    let destination = BackupDestination(path: output)
    guard output != "-",
      let standing = ArchiveOutput.standing(at: destination, named.archive.device.identifier)
    else { return nil }
    if !dryRun.isOn { try session.lock(standing, named: standing, for: .writing) }
    do throws(KeyhaulError) {
      let copy = try session.progress("Comparing \(named.name) with \(standing)", phase: "compare") {
        (report) throws(KeyhaulError) in
        try BackupRewriter().existingCopy(
          of: named.archive, at: path, in: standing, as: destination, progress: report.orInterrupted)
      }
      if copy != nil, !dryRun.isOn {
        let isDirectory = if case .directory = destination { true } else { false }
        BackupRewriter().removeLeftovers(at: standing, isDirectory: isDirectory)
      }
      return copy
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  /// Refuses what only a decrypted copy takes.
  private func checkFlags() throws(CommandFailure) {
    guard !decrypted else { return }
    let given = [
      reveal ? "--reveal" : nil, password.isGiven ? "a password" : nil,
      try opening.deviceKeySource() != nil ? "a device key" : nil, opening.namesRounds ? "--max-rounds" : nil,
    ].compactMap(\.self)
    guard let first = given.first else { return }
    throw .usage(
      "\(first) applies only to a decrypted copy",
      why: "a packed copy keeps every stored byte", try: "--decrypted, or leave it out"
    )
  }

  /// Whether the name does not say what is written.
  private var writesTarUnderAnotherName: Bool {
    guard output != "-", case .file(let path, .tar) = BackupDestination(path: output) else { return false }
    return !path.lowercased().hasSuffix(".tar")
  }

  /// - Parameter isThere: Whether the copy was there already, as it would be written.
  private func report(
    _ named: NamedArchive, outcome: RewrittenBackup?, isThere: Bool = false, in session: Session
  ) throws(CommandFailure) {
    if session.isJSON {
      let document = ConversionDocument(
        of: named.name, digest: named.archive.digest, to: output, copy: outcome, isDryRun: dryRun.isOn)
      return try session.answer(document.json(isWritten: !isThere && !dryRun.isOn))
    }
    let place = output == "-" ? "standard output" : UntrustedText.escaped(outcome?.path ?? output)
    let kind = writesTarUnderAnotherName ? ", a tar" : ""
    let size =
      outcome.map { " (\(HumanReadable.count($0.fileCount, "file")), \(HumanReadable.bytes($0.byteCount)))" } ?? ""
    if isThere {
      return try session.announce(
        "Nothing to do: \(place) already contains the same files as \(UntrustedText.escaped(named.name)).")
    }
    let sentence =
      "\(outcome == nil ? "Would copy" : "Copied") \(UntrustedText.escaped(named.name)) to \(place)\(kind)\(size)."
    // The archive itself is on standard output then.
    if output == "-" { session.note(sentence) } else { try session.announce(sentence) }
    session.detail("  \(named.archive.digest)", level: 2)
  }
}

/// `keyhaul convert --decrypted`: a copy that other programs read, without the backup's encryption.
struct DecryptedConversion {
  private let verb: Convert
  private let named: NamedArchive
  private let path: String
  private let destination: BackupDestination
  private let replaces: Bool

  /// - Throws: What cannot be decrypted, before anybody is asked for a password.
  init(
    _ verb: Convert, _ named: NamedArchive, _ path: String, to destination: BackupDestination, replaces: Bool
  ) throws(CommandFailure) {
    guard named.archive.areFilesEncrypted else {
      throw .usage(
        "\(named.name) is not encrypted", why: "there is nothing to decrypt", try: "leave --decrypted out")
    }
    guard !verb.reveal || verb.output != "-" else {
      throw .usage(
        "--reveal and -o - cannot be used together",
        why: "the items are written next to the copy", try: "-o FILE")
    }
    do throws(KeyhaulError) {
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(
        CommandStatus(error.category), "\(named.name) cannot be decrypted into a copy", why: error.reason,
        try: "keyhaul export \(ShellQuoting.quote(named.name)) --files DIR writes its files")
    }
    self.verb = verb
    self.named = named
    self.path = path
    self.destination = destination
    self.replaces = replaces
  }

  func perform(in session: Session) throws -> CommandStatus {
    if verb.reveal { try session.prepareOutput(itemsPath, inputs: [path], asks: !verb.dryRun.isOn) }
    let unlocker = ArchiveUnlocker(named, verb.opening, in: session)
    let hardware = try unlocker.hardwareKey()
    let key = try unlocker.key(verb.password)
    let keys = try unlocker.classKeys(with: key)
    // What is damaged in the original the copy does not show any more.
    let damage = try damage(with: key)
    for fact in damage {
      session.warn(
        "\(named.name) is damaged, and a decrypted copy would hide the damage", why: fact.description,
        try: "keyhaul verify \(ShellQuoting.quote(named.name)) shows what can be saved", evenQuiet: true)
    }
    guard !verb.dryRun.isOn else {
      try report(nil, in: session)
      return damage.isEmpty ? .ok : .partial
    }
    let written = try decrypt(keys, in: session)
    if verb.reveal, named.archive.hasKeychain {
      let reader = try unlocker.reader(with: key, hardware, for: .exporting)
      try ItemsInClear.write(reader, of: named, to: itemsPath, verb.common, in: session)
    }
    try report(written, in: session)
    warn(of: written, in: session)
    return written.isComplete && damage.isEmpty ? .ok : .partial
  }

  /// What shows that the original is not as its device wrote it.
  private func damage(with key: BackupKey) throws(CommandFailure) -> [BackupDamage] {
    do throws(KeyhaulError) {
      return try named.archive.open(with: key, for: .reading).damage
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  /// Beside the copy: in it they would be no part of a backup.
  private var itemsPath: String {
    var name = Substring(verb.output)
    while name.count > 1, name.hasSuffix("/") { name = name.dropLast() }
    return "\(name).keychain.json"
  }

  private func decrypt(_ keys: ClassKeys, in session: Session) throws(CommandFailure) -> DecryptedBackup {
    let done = DoneChange("\(named.name) was copied unencrypted to \(verb.output)")
    return try session.rewriting(
      named, to: verb.output, titled: "Decrypting \(named.name)", phase: "copy", unit: .byte, done
    ) { (rewriter, progress) throws(KeyhaulError) in
      try rewriter.decrypt(
        named.archive, at: path, to: destination, keys: keys, replace: replaces, progress: progress)
    }
  }

  // MARK: The result

  private func report(_ written: DecryptedBackup?, in session: Session) throws(CommandFailure) {
    let copy = written?.copy
    if session.isJSON {
      let document = ConversionDocument(
        of: named.name, digest: named.archive.digest, to: verb.output, copy: copy, isDryRun: verb.dryRun.isOn)
      return try session.answer(
        document.json(
          decrypting: written, differing: differing(written), items: verb.reveal ? itemsPath : nil))
    }
    let place = verb.output == "-" ? "standard output" : UntrustedText.escaped(copy?.path ?? verb.output)
    let size =
      copy.map { " (\(HumanReadable.count($0.fileCount, "file")), \(HumanReadable.bytes($0.byteCount)))" } ?? ""
    let did = written == nil ? "Would copy" : "Copied"
    let sentence = "\(did) \(UntrustedText.escaped(named.name)) unencrypted to \(place)\(size)."
    if verb.output == "-" { session.note(sentence) } else { try session.announce(sentence) }
    session.note(
      "Anyone can read the copy's files. Its keychain items are still encrypted with the password"
        + (verb.reveal ? ", but \(itemsPath) contains them in plain text." : "."))
    session.noteDryRun(verb.dryRun)
  }

  private func warn(of written: DecryptedBackup, in session: Session) {
    session.settleReplaced(written.copy.leftover)
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
        why: "the first: \(first.error.reason)", try: "keyhaul verify \(ShellQuoting.quote(named.name)) lists them",
        evenQuiet: true)
    }
    warn(ofDiffering: differing(written).map(Self.name), in: session)
    named.warn(ofRowsWithoutIdentifier: written.rowWithoutIdentifierCount, in: session)
  }

  /// In the order of their names, whatever order they are stored in.
  private func differing(_ written: DecryptedBackup?) -> [ListedFile] {
    (written?.differing ?? []).sorted { Self.name(of: $0) < Self.name(of: $1) }
  }

  private static func name(of file: ListedFile) -> String {
    guard let domain = file.domain, let path = file.relativePath else { return file.fileIdentifier }
    return "\(domain)/\(path)"
  }

  private func warn(ofDiffering names: [String], in session: Session) {
    guard !names.isEmpty else { return }
    session.warn(
      "\(HumanReadable.count(names.count, "file")) copied as "
        + "\(names.count == 1 ? "it is, although it is" : "they are, although they are") not what was backed up",
      why: "the digest in the manifest or in the seal differs; the copy is sealed in its current state",
      try: "another copy of the backup", evenQuiet: true)
    let shown = verb.common.verbose > 0 ? names[...] : names.prefix(VerificationReport.defaultFaultLimit)
    for name in shown { session.note("  \(UntrustedText.quoted(name))") }
    if shown.count < names.count {
      session.note("  \(HumanReadable.grouped(names.count - shown.count)) more (-v lists all)")
    }
  }
}
