import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul convert --decrypted`: a copy that other programs read, without the backup's encryption.
struct DecryptedConversion {
  private let verb: Convert
  private let named: NamedArchive
  private let path: String
  private let destination: ArchiveDestination
  private let replaces: Bool

  /// - Throws: What cannot be decrypted, before anybody is asked for a password.
  init(
    _ verb: Convert, _ named: NamedArchive, _ path: String, to destination: ArchiveDestination, replaces: Bool
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
    do throws(BackupArchiveError) {
      try BackupRewriter.checkReencryption(of: named.archive)
    } catch {
      throw CommandFailure(
        CommandStatus(error.category), "\(named.name) cannot be decrypted into a copy", why: error.reason,
        try: "keyhaul export \(ShellWord.quoted(named.name)) --files DIR writes its files")
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
        "\(named.name) is damaged, and its decrypted copy would hide the damage", why: fact.description,
        try: "keyhaul verify \(ShellWord.quoted(named.name)) says what can be saved", evenQuiet: true)
    }
    guard !verb.dryRun.isOn else {
      try report(nil, in: session)
      return damage.isEmpty ? .ok : .partial
    }
    try Interruption.check()
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
  private func damage(with key: borrowing ArchiveKey) throws(CommandFailure) -> [ArchiveDamage] {
    do throws(ArchivedKeychainError) {
      return try OpenedArchive(named.archive, key: key, deviceKey: nil, for: .reading).damage
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

  private func decrypt(_ keys: consuming ClassKeys, in session: Session) throws(CommandFailure) -> DecryptedBackup {
    let keys = HandedOver(keys)
    let done = DoneChange("\(named.name) was copied unencrypted to \(verb.output)")
    do throws(BackupArchiveError) {
      return try session.progress("Decrypting \(named.name)", phase: "copy", unit: .byte) {
        (report) throws(BackupArchiveError) in
        try session.changing(done) { () throws(BackupArchiveError) in
          guard let keys = keys.take() else { throw BackupArchiveError(.keyUnavailable, "the keys were used before") }
          return try BackupRewriter().decrypt(
            named.archive, at: path, to: destination, keys: keys, replace: replaces, progress: report.orInterrupted)
        }
      }
    } catch {
      try Interruption.check()
      throw ArchiveOutput.failure(error, writing: verb.output, reading: named.name)
    }
  }

  // MARK: The result

  private func report(_ written: DecryptedBackup?, in session: Session) throws(CommandFailure) {
    let copy = written?.copy
    if session.isJSON {
      let faults = written?.faults.map { fault -> JSONValue in
        [
          "file_id": .string(fault.fileIdentifier), "fault": .string(fault.error.code.rawValue),
          "reason": .string(fault.error.reason),
        ]
      }
      return try session.answer([
        "format": "convert-result/1", "source": .string(named.name), "archive": .text(copy?.path ?? verb.output),
        "digest": .string(named.archive.digest), "files": copy.map { .count($0.fileCount) } ?? .null,
        "bytes": copy.map { .integer($0.byteCount) } ?? .null,
        "foreign": .array((copy?.foreignFiles ?? []).map { .string($0) }), "decrypted": true,
        "faults": .array(faults ?? []),
        "differing": .array(
          differing(written).map {
            ["file_id": .string($0.fileIdentifier), "domain": .text($0.domain), "path": .text($0.relativePath)]
          }), "items": verb.reveal ? .string(itemsPath) : .null,
        "dry_run": .boolean(verb.dryRun.isOn),
      ])
    }
    let place = verb.output == "-" ? "standard output" : HostileText.shown(copy?.path ?? verb.output)
    let size = copy.map { " (\(Amounts.count($0.fileCount, "file")), \(Amounts.bytes($0.byteCount)))" } ?? ""
    let did = written == nil ? "Would copy" : "Copied"
    let sentence = "\(did) \(HostileText.shown(named.name)) unencrypted to \(place)\(size)."
    if verb.output == "-" { session.note(sentence) } else { try session.announce(sentence) }
    session.note(
      "Anyone can read its files. Its keychain items stay encrypted with the password"
        + (verb.reveal ? ", but \(itemsPath) contains them in plain text." : "."))
    if verb.dryRun.isOn { session.note("Nothing was written (--dry-run).") }
  }

  private func warn(of written: DecryptedBackup, in session: Session) {
    session.settleReplaced(written.copy.leftover)
    if let first = written.copy.foreignFiles.first {
      session.warn(
        "\(Amounts.count(written.copy.foreignFiles.count, "file")) not copied",
        why:
          "not listed in the manifest; the first: \(first)"
      )
    }
    if let first = written.faults.first {
      session.warn(
        "\(Amounts.count(written.faults.count, "file")) could not be read, and \(written.faults.count == 1 ? "is" : "are") not in the copy",
        why: "the first: \(first.error.reason)", try: "keyhaul verify \(ShellWord.quoted(named.name)) lists them",
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
      "\(Amounts.count(names.count, "file")) not what was backed up, but copied as "
        + "\(names.count == 1 ? "it is" : "they are")",
      why: "the digest in the manifest or in the seal differs; the copy is sealed in its current state",
      try: "another copy of the backup", evenQuiet: true)
    let shown = verb.common.verbose > 0 ? names[...] : names.prefix(VerificationText.shortList)
    for name in shown { session.note("  \(HostileText.quoted(name))") }
    if shown.count < names.count {
      session.note("  \(Amounts.grouped(names.count - shown.count)) more (-v lists all)")
    }
  }
}
