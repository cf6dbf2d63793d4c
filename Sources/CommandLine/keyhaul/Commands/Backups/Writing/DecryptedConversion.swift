import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul convert --decrypted`: writes an unencrypted copy of a backup, for other programs.
struct DecryptedConversion {
  private let command: Convert
  private let loaded: LoadedBackup
  private let path: String
  private let destination: BackupDestination
  private let replaces: Bool

  /// Checks that the backup can be decrypted, before asking for a password.
  ///
  /// - Throws: `.usage` if the backup is not encrypted, or if `--reveal` is combined with standard output. The library's
  ///   error, with its exit status, if the backup cannot be decrypted into a copy.
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
    if writesItems { try session.prepareOutput(itemsPath, inputs: [path], asks: !command.dryRun.isOn) }
    let unlocker = BackupUnlocker(loaded, command.decryption, in: session)
    let deviceKey = try unlocker.deviceKey()
    let key = try unlocker.key(command.password)
    let keys = try unlocker.classKeys(with: key)
    // The copy will not show that the original is damaged.
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
    let decryptedCopy = try decrypt(keys, in: session)
    if writesItems {
      let reader = try unlocker.reader(with: key, deviceKey: deviceKey, for: .exporting)
      try writeItems(reader, in: session)
    }
    try report(decryptedCopy, in: session)
    warn(about: decryptedCopy, in: session)
    return decryptedCopy.isComplete && damageOfOriginal.isEmpty ? .ok : .partial
  }

  /// Returns how the original backup is damaged.
  private func damage(with key: BackupKey) throws(CommandError) -> [BackupDamage] {
    do throws(KeyhaulError) {
      return try loaded.archive.open(with: key, for: .reading).damage
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
  }

  /// Whether the items are also written. A backup without a keychain has no items.
  private var writesItems: Bool { command.reveal && loaded.archive.hasKeychain }

  /// Writes the document of all items with their secrets, and warns about items that cannot be read.
  private func writeItems(_ reader: BackupItemReader, in session: Session) throws {
    let format = try ExportFormat.chosen(command.common, output: itemsPath, reveals: true)
    let allItems = try ItemSelection(.init(kind: nil, attributes: try ItemAttributeOptions.parse([])))
    let source = ExportSource(reader, of: loaded, allItems)
    var items = ExportedItems(of: source.origin, as: format)
    try session.write(to: itemsPath) { (write) throws(CommandError) in
      try items.write(from: source, revealingSecrets: true, in: session, to: write)
    }
    items.warn(in: session)
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

  private func report(_ decryptedCopy: DecryptedBackup?, in session: Session) throws(CommandError) {
    let copy = decryptedCopy?.copy
    if session.isJSON {
      let document = ConversionDocument(
        of: loaded.name, digest: loaded.archive.digest, to: command.output, copy: copy, isDryRun: command.dryRun.isOn)
      return try session.writeDocument(
        document.json(
          decrypting: decryptedCopy, differingFiles: differingFiles(decryptedCopy),
          itemsPath: writesItems ? itemsPath : nil))
    }
    let location = command.output == "-" ? "standard output" : UntrustedText.escaped(copy?.path ?? command.output)
    let sizeNote =
      copy.map { " (\(HumanReadable.count($0.fileCount, "file")), \(HumanReadable.bytes($0.byteCount)))" } ?? ""
    let verb = decryptedCopy == nil ? "Would copy" : "Copied"
    let sentence = "\(verb) \(UntrustedText.escaped(loaded.name)) unencrypted to \(location)\(sizeNote)."
    if command.output == "-" { session.info(sentence) } else { try session.announce(sentence) }
    session.info(
      "Anyone can read the copy's files. Its keychain items are still encrypted with the password"
        + (writesItems ? ", but \(UntrustedText.escaped(itemsPath)) contains them in plain text." : "."))
    session.reportDryRun(command.dryRun)
  }

  private func warn(about decryptedCopy: DecryptedBackup, in session: Session) {
    session.warnIfOldBackupRemains(decryptedCopy.copy.leftover)
    if let first = decryptedCopy.copy.unrelatedFiles.first {
      session.warn(
        "\(HumanReadable.count(decryptedCopy.copy.unrelatedFiles.count, "file")) not copied",
        why: "not listed in the manifest; the first: \(first)")
    }
    if let first = decryptedCopy.faults.first {
      session.warn(
        "\(HumanReadable.count(decryptedCopy.faults.count, "file")) could not be read, and "
          + "\(decryptedCopy.faults.count == 1 ? "is" : "are") not in the copy",
        why: "the first: \(first.error.reason)", try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) lists them",
        ignoresQuiet: true)
    }
    warn(aboutDifferingFiles: differingFiles(decryptedCopy).map(Self.name), in: session)
    loaded.warn(aboutRowsWithoutIdentifier: decryptedCopy.rowWithoutIdentifierCount, in: session)
  }

  /// Returns the files that do not match their digest, ordered by name.
  private func differingFiles(_ decryptedCopy: DecryptedBackup?) -> [ListedFile] {
    (decryptedCopy?.differingFiles ?? []).sorted { Self.name(of: $0) < Self.name(of: $1) }
  }

  private static func name(of file: ListedFile) -> String {
    guard let domain = file.domain, let path = file.relativePath else { return file.fileIdentifier }
    return "\(domain)/\(path)"
  }

  private func warn(aboutDifferingFiles names: [String], in session: Session) {
    guard !names.isEmpty else { return }
    session.warn(
      "\(HumanReadable.count(names.count, "file")) copied as "
        + "\(names.count == 1 ? "it is, although it is" : "they are, although they are") not what was backed up",
      why: "the digest in the manifest or in the seal differs; the copy is sealed in its current state",
      try: "another copy of the backup", ignoresQuiet: true)
    let listedNames = command.common.verbose > 0 ? names[...] : names.prefix(VerificationReport.defaultFaultLimit)
    for name in listedNames { session.info("  \(UntrustedText.quoted(name))") }
    let otherCount = names.count - listedNames.count
    if otherCount > 0 { session.info("  \(HumanReadable.grouped(otherCount)) more (-v lists all)") }
  }
}
