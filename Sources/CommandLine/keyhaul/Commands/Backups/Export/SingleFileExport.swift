import KeyhaulKit
import Reports

/// `keyhaul export --domain D --path P`: writes one file of a backup, decrypted chunk by chunk.
struct SingleFileExport {
  private let command: Export
  private let domain: String
  private let path: String

  init(_ command: Export, domain: String) throws(CommandError) {
    guard let path = command.filter.attributes.path else {
      throw .usage("--domain needs --path", why: "--path names the file in the domain", try: "--path PATH")
    }
    var itemFilter = command.filter
    itemFilter.attributes.path = nil
    guard try !ItemSelection(itemFilter).isRestricted else {
      throw .usage(
        "--domain cannot be used with attributes of items", why: "it exports a file, not items",
        try: "--domain and --path alone")
    }
    if let format = command.common.format, format != .json {
      throw .usage(
        "--domain and --format \(format.rawValue) cannot be used together", why: "a file is exported as it is",
        try: "leave --format out")
    }
    if command.reveal {
      throw .usage(
        "--domain and --reveal cannot be used together", why: "a file is exported as it is",
        try: "use only one of them")
    }
    self.command = command
    self.domain = domain
    self.path = path
  }

  func run(in session: Session) throws -> CommandExitStatus {
    if command.output == "-" {
      guard !session.isJSON else {
        throw CommandError.usage(
          "--json and -o - cannot be used together", why: "both write to standard output", try: "-o FILE")
      }
      try session.rejectTerminal(
        for: "a file of a backup", why: "its bytes are written as they are, and a terminal may interpret them")
    }
    let backup = try SourceResolver(session).backup(command.source)
    _ = try backup.requirePath(for: "export --domain")
    try command.prepareOutput(from: backup, in: session)
    let loaded = try backup.open(storage: command.accessOptions.storage, in: session)
    let unlocker = BackupUnlocker(loaded, command.accessOptions.decryption, in: session)
    let deviceKey = try unlocker.deviceKey()
    let key = try unlocker.key(command.accessOptions.password)
    let keys = try unlocker.classKeys(with: key, deviceKey: unlocker.usableKey(deviceKey, with: key))
    try loaded.warnIfSealBroken(with: keys, in: session)
    let file = try find(in: loaded, keys: keys)
    try checkIsFile(file)
    let reading = try read(file, of: loaded, keys: keys, in: session)
    return try report(reading, of: loaded, in: session)
  }

  /// Finds the file that the user named. If its name is not UTF-8, the user may also give the name as Keyhaul shows it.
  private func find(
    in loaded: LoadedBackup, keys: ClassKeys
  ) throws(CommandError) -> ListedFile {
    let similarFile: SimilarFile
    let filesShownAsPath: [ListedFile]
    do throws(KeyhaulError) {
      let fileList = try loaded.archive.fileList(with: keys)
      if let file = try fileList.file(domain: domain, relativePath: path) { return file }
      filesShownAsPath = try fileList.files(shownAs: domain, path)
      if filesShownAsPath.count == 1 { return filesShownAsPath[0] }
      similarFile = try SimilarFile(domain: domain, path: path, in: fileList)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    guard filesShownAsPath.isEmpty else {
      throw CommandError(
        .noMatch, "\(filesShownAsPath.count) files are shown as \(path) in \(domain)",
        why: "their names are not UTF-8, so Keyhaul cannot tell which one you mean",
        try: "export --files, which writes each of them")
    }
    throw similarFile.error(inBackup: loaded.name)
  }

  /// Rejects a folder, a link and an unfinished entry.
  private func checkIsFile(_ file: ListedFile) throws(CommandError) {
    let kind: String? =
      switch file.kind {
      case .file: nil
      case .directory: "a folder"
      case .link: "a link"
      case .other: "an entry that the device had not finished"
      }
    guard let kind else { return }
    throw .usage("\(domain)/\(path) is not a file", why: "the backup lists it as \(kind)", try: "the path of a file")
  }

  // MARK: Reading

  /// Decrypts the file to the output. A dry run only decrypts it.
  private func read(
    _ file: ListedFile, of loaded: LoadedBackup, keys: ClassKeys, in session: Session
  ) throws(CommandError) -> PayloadReader.Reading {
    if command.dryRun.isOn { return try decrypt(file, of: loaded, keys) { _ in } }
    if command.output == "-" {
      return try decrypt(file, of: loaded, keys) { (bytes) throws(CommandError) in try session.writeRaw(bytes) }
    }
    var reading: PayloadReader.Reading?
    try session.committing(command.committedChange) { () throws(CommandError) in
      try OutputFile.write(to: command.output) { (write) throws(CommandError) in
        reading = try decrypt(file, of: loaded, keys, write)
      }
    }
    guard let reading else { throw CommandError(.failed, "nothing was read") }
    return reading
  }

  /// Decrypts a file, and passes it to a closure in chunks.
  private func decrypt(
    _ file: ListedFile, of loaded: LoadedBackup, _ keys: ClassKeys,
    _ write: (UnsafeRawBufferPointer) throws(CommandError) -> Void
  ) throws(CommandError) -> PayloadReader.Reading {
    var failure: CommandError?
    let reading: PayloadReader.Reading
    do throws(KeyhaulError) {
      let payload = try loaded.archive.payload(of: file)
      reading = try PayloadReader(loaded.archive).read(payload, as: file, with: keys) {
        (bytes) throws(KeyhaulError) in
        do throws(CommandError) {
          try Interruption.check()
          try write(bytes)
        } catch {
          failure = error
          throw KeyhaulError(.interrupted, "the file could not be written")
        }
      }
    } catch {
      throw failure ?? CommandError(backup: error, name: loaded.name)
    }
    guard reading.scan.hasValidPadding else {
      throw CommandError(
        .damaged, "\(domain)/\(path) is damaged in \(loaded.name)",
        why: "its stored form does not end with valid padding",
        try: "another copy of the backup")
    }
    return reading
  }

  // MARK: The result

  private func report(
    _ reading: PayloadReader.Reading, of loaded: LoadedBackup, in session: Session
  ) throws(CommandError) -> CommandExitStatus {
    let matchesDigest = reading.scan.matches(reading.record?.digest)
    let plainByteCount = reading.scan.plainByteCount
    let isUnchanged = reading.isUnchanged ?? true
    if !isUnchanged { warnAboutChange(matchesDigest: matchesDigest, in: session) }
    if let size = reading.record?.size, size != plainByteCount {
      session.debug(
        "the manifest records \(HumanReadable.bytes(size)); Keyhaul derives the size from the file's padding")
    }
    if session.isJSON {
      try session.writeDocument([
        "format": "file-export/1", "source": .string(loaded.name), "domain": .string(domain), "path": .string(path),
        "output": .string(command.output), "bytes": .integer(plainByteCount),
        "digest_fits": matchesDigest.map { .boolean($0) } ?? .null,
        "as_sealed": reading.matchesSeal.map { .boolean($0) } ?? .null, "dry_run": .boolean(command.dryRun.isOn),
      ])
    } else {
      let verb = command.dryRun.isOn ? "Would export" : "Exported"
      let sentence =
        "\(verb) \(UntrustedText.escaped("\(domain)/\(path)")) from \(UntrustedText.escaped(loaded.name)) to "
        + "\(UntrustedText.escaped(Export.outputName(command.output))) (\(HumanReadable.bytes(plainByteCount)))."
      try command.announce(sentence, in: session)
    }
    return isUnchanged ? .ok : .partial
  }

  /// Warns that the file has changed since it was backed up.
  ///
  /// - Parameter matchesDigest: Whether the file matches its digest in the manifest; `nil` if the manifest has no digest.
  private func warnAboutChange(matchesDigest: Bool?, in session: Session) {
    session.warn(
      "\(domain)/\(path) is not what was backed up",
      why: matchesDigest == false
        ? "its digest differs from the one in the manifest" : "it has changed since the backup was sealed",
      try: "another copy of the backup")
  }
}
