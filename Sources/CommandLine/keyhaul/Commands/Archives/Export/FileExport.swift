import KeyhaulKit
import Reports

/// `keyhaul export --domain D --path P`: one file out of a backup, decrypted while it passes.
struct FileExport {
  private let verb: Export
  private let domain: String
  private let path: String

  init(_ verb: Export, domain: String) throws(CommandFailure) {
    guard let path = verb.chosen.attributes.path else {
      throw .usage("--domain needs --path", why: "it names a file of the domain", try: "--path PATH")
    }
    var others = verb.chosen
    others.attributes.path = nil
    guard try !ItemSelection(others).isRestricted else {
      throw .usage(
        "--domain cannot be used with attributes of items", why: "it exports a file, not items",
        try: "--domain and --path alone")
    }
    if let format = verb.common.format, format != .json {
      throw .usage(
        "--domain and --format \(format.rawValue) cannot be used together", why: "a file is exported as it is",
        try: "leave --format out")
    }
    if verb.reveal {
      throw .usage(
        "--domain and --reveal cannot be used together", why: "a file is exported as it is",
        try: "use only one of them")
    }
    self.verb = verb
    self.domain = domain
    self.path = path
  }

  func perform(in session: Session) throws -> CommandStatus {
    if verb.output == "-" {
      guard !session.isJSON else {
        throw CommandFailure.usage(
          "--json and -o - cannot be used together", why: "both write to standard output", try: "-o FILE")
      }
      try session.refuseTerminal(
        for: "a file of a backup", why: "its bytes are written as they are, and a terminal may interpret them")
    }
    let found = try ArgumentFinder(session).archive(verb.source)
    _ = try found.requirePath(for: "export --domain")
    try verb.prepareOutput(from: found, in: session)
    let named = try found.open(storage: verb.unlocking.storage, in: session)
    let unlocker = ArchiveUnlocker(named, verb.unlocking.opening, in: session)
    let hardware = try unlocker.hardwareKey()
    let key = try unlocker.key(verb.unlocking.password)
    let keys = try unlocker.classKeys(with: key, unlocker.fitting(hardware, with: key))
    try named.warn(ofSealBreakWith: keys, in: session)
    let file = try find(in: named, keys: keys)
    try requireFile(file)
    let reading = try read(file, of: named, keys: keys, in: session)
    return try report(reading, file, of: named, in: session)
  }

  private func find(
    in named: NamedArchive, keys: borrowing ClassKeys
  ) throws(CommandFailure) -> ListedFile {
    let near: NearFile
    let shown: [ListedFile]
    do throws(BackupArchiveError) {
      let list = try named.archive.fileList(with: keys)
      if let found = try list.file(domain: domain, relativePath: path) { return found }
      shown = try list.files(shownAs: domain, path)
      if shown.count == 1 { return shown[0] }
      near = try NearFile(domain: domain, path: path, in: list)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    guard shown.isEmpty else {
      throw CommandFailure(
        .noMatch, "\(shown.count) files are shown as \(path) in \(domain)",
        why: "their names are not UTF-8, and nothing tells which is meant",
        try: "export --files, which writes each of them")
    }
    throw near.failure(archive: named.name)
  }

  private func requireFile(_ file: ListedFile) throws(CommandFailure) {
    let what =
      switch file.kind {
      case .file: nil as String?
      case .directory: "a folder"
      case .link: "a link"
      case .other: "something that a device had not finished"
      }
    guard let what else { return }
    throw .usage("\(domain)/\(path) is not a file", why: "the backup lists it as \(what)", try: "the path of a file")
  }

  // MARK: Reading

  private func read(
    _ file: ListedFile, of named: NamedArchive, keys: borrowing ClassKeys, in session: Session
  ) throws(CommandFailure) -> PayloadReader.Reading {
    if verb.dryRun.isOn { return try pass(file, of: named, keys) { _ in } }
    if verb.output == "-" {
      return try pass(file, of: named, keys) { (bytes) throws(CommandFailure) in try session.writeRaw(bytes) }
    }
    var reading: PayloadReader.Reading?
    try session.changing(verb.written) { () throws(CommandFailure) in
      try ReportFile.write(to: verb.output) { (write) throws(CommandFailure) in
        reading = try pass(file, of: named, keys, write)
      }
    }
    guard let reading else { throw CommandFailure(.failed, "nothing was read") }
    return reading
  }

  private func pass(
    _ file: ListedFile, of named: NamedArchive, _ keys: borrowing ClassKeys,
    _ write: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void
  ) throws(CommandFailure) -> PayloadReader.Reading {
    var failure: CommandFailure?
    let reading: PayloadReader.Reading
    do throws(BackupArchiveError) {
      let payload = try named.archive.payload(of: file)
      reading = try PayloadReader(named.archive).read(payload, as: file, with: keys) {
        (portion) throws(BackupArchiveError) in
        do throws(CommandFailure) {
          try Interruption.check()
          try write(portion)
        } catch {
          failure = error
          throw BackupArchiveError(.interrupted, "the file could not be written")
        }
      }
    } catch {
      throw failure ?? CommandFailure(archive: error, name: named.name)
    }
    guard reading.payload.hasValidPadding else {
      throw CommandFailure(
        .damaged, "\(domain)/\(path) is damaged in \(named.name)",
        why: "its stored form does not end with valid padding",
        try: "another copy of the backup")
    }
    return reading
  }

  // MARK: The result

  private func report(
    _ reading: PayloadReader.Reading, _ file: ListedFile, of named: NamedArchive, in session: Session
  ) throws(CommandFailure) -> CommandStatus {
    let digestFits = reading.payload.fits(reading.record?.digest)
    let plainByteCount = reading.payload.plainByteCount
    let isRight = reading.isRight ?? true
    if !isRight {
      session.warn(
        "\(domain)/\(path) is not what was backed up",
        why: digestFits == false
          ? "its digest differs from the one in the manifest" : "it has changed since it was sealed",
        try: "another copy of the backup")
    }
    if let size = reading.record?.size, size != plainByteCount {
      session.detail("the manifest records \(Amounts.bytes(size)); the end of the file decides")
    }
    if session.isJSON {
      try session.answer([
        "format": "file-export/1", "source": .string(named.name), "domain": .string(domain), "path": .string(path),
        "output": .string(verb.output), "bytes": .integer(plainByteCount),
        "digest_fits": digestFits.map { .boolean($0) } ?? .null,
        "as_sealed": reading.isSealed.map { .boolean($0) } ?? .null, "dry_run": .boolean(verb.dryRun.isOn),
      ])
    } else {
      let did = verb.dryRun.isOn ? "Would export" : "Exported"
      let sentence =
        "\(did) \(HostileText.shown("\(domain)/\(path)")) from \(HostileText.shown(named.name)) to "
        + "\(HostileText.shown(Export.shown(verb.output))) (\(Amounts.bytes(plainByteCount)))."
      try verb.announce(sentence, in: session)
    }
    return isRight ? .ok : .partial
  }
}

/// What a backup has instead of a file that was asked for.
private struct NearFile {
  private let domain: String
  private let path: String
  private let nearDomain: String?
  private let nearPath: String?
  private let hasDomain: Bool

  /// Paths that are compared letter by letter; in the largest domains the rest is only compared by name.
  private static let maximumComparedCount = 5_000

  init(domain: String, path: String, in list: FileList) throws(BackupArchiveError) {
    self.domain = domain
    self.path = path
    var domains: Set<String> = []
    var candidates: [String] = []
    var sameName: String?
    let name = path.split(separator: "/").last
    try list.forEachFile { file in
      guard let other = file.domain, let otherPath = file.relativePath else { return }
      domains.insert(other)
      guard other == domain, file.kind == .file else { return }
      if otherPath.lowercased() == path.lowercased()
        || (sameName == nil && otherPath.split(separator: "/").last == name)
      {
        sameName = otherPath
      }
      if candidates.count < Self.maximumComparedCount { candidates.append(otherPath) }
    }
    hasDomain = domains.contains(domain)
    nearDomain = hasDomain ? nil : Self.nearest(to: domain, among: domains.sorted())
    nearPath = sameName ?? Self.nearest(to: path, among: candidates)
  }

  /// Capitals count for nothing.
  private static func nearest(to word: String, among names: [String]) -> String? {
    let spelled = Dictionary(names.map { ($0.lowercased(), $0) }) { first, _ in first }
    return EditDistance.nearest(to: word, among: spelled.keys.sorted()).flatMap { spelled[$0] }
  }

  private func advice(_ archive: String) -> String {
    "keyhaul inspect \(ShellWord.quoted(archive)) --tree -v lists every file"
  }

  func failure(archive: String) -> CommandFailure {
    guard hasDomain else {
      return CommandFailure(
        .noMatch, "\(archive) has no domain \(domain)", why: nearDomain.map { "\"\($0)\" is similar" },
        try: nearDomain.map { "--domain \(ShellWord.quoted($0))" } ?? advice(archive))
    }
    return CommandFailure(
      .noMatch, "\(archive) has no file \(path) in \(domain)", why: nearPath.map { "\"\($0)\" is similar" },
      try: nearPath.map { "--path \(ShellWord.quoted($0))" } ?? advice(archive))
  }
}
