import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul export --files DIR`: files out of a backup into a folder, in the tree that they have there.
struct FilesExport {
  private let verb: Export
  private let folder: String

  /// - Throws: `.usage` for flags that are about items, or about one file.
  init(_ verb: Export, folder: String) throws(CommandFailure) {
    guard !folder.isEmpty, folder != "-" else {
      throw .usage("--files cannot be \"\(folder)\"", why: "it names a folder", try: "--files DIR")
    }
    guard verb.outputPath == nil else {
      throw .usage(
        "--files and --output cannot be used together", why: "files go into the folder",
        try: "use only one of them")
    }
    guard !verb.reveal else {
      throw .usage(
        "--files and --reveal cannot be used together", why: "a file is exported as it is",
        try: "use only one of them")
    }
    var others = verb.chosen
    (others.attributes.path, others.attributes.app) = (nil, nil)
    guard try !ItemSelection(others).isRestricted else {
      throw .usage(
        "--files cannot be used with attributes of items", why: "it exports files, not items",
        try: "--domain, --app and --path")
    }
    try verb.common.check(formats: [.text, .json, .csv])
    self.verb = verb
    self.folder = folder
  }

  func perform(in session: Session) throws -> CommandStatus {
    let found = try ArgumentFinder(session).archive(verb.source)
    _ = try found.requirePath(for: "export --files")
    try session.requireOutput(folder, differsFrom: found.files + verb.unlocking.files, after: "--files")
    let named = try found.open(storage: verb.unlocking.storage, in: session)
    let keys = try unlock(named, in: session)
    let list: FileList
    switch keys {
    case .some(let keys):
      try named.warn(ofSealBreakWith: keys, in: session)
      list = try explaining(named) { () throws(KeyhaulError) in try named.archive.fileList(with: keys) }
    case .none: list = try explaining(named) { () throws(KeyhaulError) in try named.archive.fileList() }
    }
    let choice = FileSelection(
      domains: verb.domain, app: verb.chosen.attributes.app, path: verb.chosen.attributes.path, in: named.archive)
    let plan = try explaining(named) { () throws(KeyhaulError) in
      try ExtractionPlan(of: list, stored: try named.archive.storedFiles(), choosing: choice.contains)
    }
    guard plan.rowCount > 0 else { throw nothingChosen(in: named, list) }
    let request = FileExtractor.Request(plan, choice: choice.text, into: folder)
    let report = FilesReport(plan, named.name, folder)
    named.warn(ofRowsWithoutIdentifier: plan.rowWithoutIdentifierCount, in: session)
    guard !verb.dryRun.isOn else {
      try explaining(named) { () throws(KeyhaulError) in try FileExtractor().check(request, of: named.archive) }
      try report.announcePlan(in: session)
      return .ok
    }
    let files = try extract(request, named, list, keys: keys, in: session)
    if verb.common.isCSV { try writeTable(of: files) }
    try report.announce(files, in: session)
    // Rows that the list has lost name files that nobody can count among those that were written.
    let damage = list.findings.filter(\.isDamage)
    for finding in damage where !named.archive.findings.contains(finding) { named.warn(of: finding, in: session) }
    let isListWhole =
      damage.isEmpty
      && !named.archive.findings.contains { $0.kind == .listJournalUnread || $0.kind == .manifestMissing }
    return files.isComplete && isListWhole && plan.rowWithoutIdentifierCount == 0 ? .ok : .partial
  }

  /// The class keys; `nil` for a backup whose files are not encrypted.
  private func unlock(_ named: NamedArchive, in session: Session) throws(CommandFailure) -> ClassKeys? {
    guard named.archive.areFilesEncrypted else {
      if !named.archive.isEncrypted,
        let source = try verb.unlocking.password.givenSource(environment: session.environment)
      {
        throw named.needlessPassword(source)
      }
      return nil
    }
    let unlocker = ArchiveUnlocker(named, verb.unlocking.opening, in: session)
    let hardware = try unlocker.hardwareKey()
    let key = try unlocker.key(verb.unlocking.password)
    return try unlocker.classKeys(with: key, unlocker.fitting(hardware, with: key))
  }

  private func extract(
    _ request: FileExtractor.Request, _ named: NamedArchive, _ list: FileList, keys: ClassKeys?,
    in session: Session
  ) throws(CommandFailure) -> ExtractedFiles {
    try Interruption.check()
    do throws(KeyhaulError) {
      return try session.progress("Writing files to \(folder)", phase: "extract", unit: .byte) {
        (report) throws(KeyhaulError) in
        try session.changing(DoneChange("the files were written to \(folder)")) { () throws(KeyhaulError) in
          try FileExtractor().extract(
            request, from: named.archive, list: list, keys: keys, progress: report.orInterrupted)
        }
      }
    } catch {
      try Interruption.check("the files already in \(folder) stay; the same command continues from there")
      throw failure(error, named)
    }
  }

  private func explaining<Value: ~Copyable>(
    _ named: NamedArchive, _ body: () throws(KeyhaulError) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(KeyhaulError) { return try body() } catch { throw failure(error, named) }
  }

  /// In the words of what the user named, which for what cannot be written is the folder.
  private func failure(_ error: KeyhaulError, _ named: NamedArchive) -> CommandFailure {
    var failure = ArchiveOutput.failure(error, writing: folder, reading: named.name)
    switch error.code {
    case .occupied:
      failure.advice = "a new folder; or, if the backup is unchanged, the command that began to fill this folder"
    case .noSpace, .unwritable:
      failure.advice =
        "free space or fix the problem, and run it again: it continues where it stopped"
    default: break
    }
    return failure
  }

  private func nothingChosen(in named: NamedArchive, _ list: FileList) -> CommandFailure {
    let domains = (try? list.listing().rowCountByDomain.keys.sorted()) ?? []
    let wanted = verb.domain.first ?? verb.chosen.attributes.app.map { "AppDomain-\($0)" }
    let near = wanted.flatMap { EditDistance.nearest(to: $0, among: domains) }
    return CommandFailure(
      .noMatch, "\(named.name) has no such file", why: near.map { "the domain \"\($0)\" is similar" },
      try: near.map { "--domain \(ShellQuoting.quote($0))" }
        ?? "keyhaul inspect \(ShellQuoting.quote(named.name)) --tree -v lists every file")
  }

  private func writeTable(of files: ExtractedFiles) throws(CommandFailure) {
    let path = (folder.hasSuffix("/") ? folder : folder + "/") + ExtractedFilesTable.name
    try ReportFile.write(to: path) { (write) throws(CommandFailure) in
      var failure: CommandFailure?
      do throws(KeyhaulError) {
        try ExtractedFilesTable.forEachPortion(ofManifest: files.manifestPath) { (bytes) throws(KeyhaulError) in
          do throws(CommandFailure) {
            try bytes.withRawBytes(write)
          } catch {
            failure = error
            throw KeyhaulError(.unwritable, "the table")
          }
        }
      } catch {
        throw failure ?? CommandFailure(archive: error, name: files.manifestPath)
      }
    }
  }
}

/// `keyhaul export --domain D --path P`: one file out of a backup, decrypted while it passes.
struct FileExport {
  private let verb: Export
  private let domain: String
  private let path: String

  init(_ verb: Export, domain: String) throws(CommandFailure) {
    guard let path = verb.chosen.attributes.path else {
      throw .usage("--domain needs --path", why: "--path names the file in the domain", try: "--path PATH")
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
    in named: NamedArchive, keys: ClassKeys
  ) throws(CommandFailure) -> ListedFile {
    let near: NearFile
    let shown: [ListedFile]
    do throws(KeyhaulError) {
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
        why: "their names are not UTF-8, so Keyhaul cannot tell which one you mean",
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
      case .other: "an entry that the device had not finished"
      }
    guard let what else { return }
    throw .usage("\(domain)/\(path) is not a file", why: "the backup lists it as \(what)", try: "the path of a file")
  }

  // MARK: Reading

  private func read(
    _ file: ListedFile, of named: NamedArchive, keys: ClassKeys, in session: Session
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
    _ file: ListedFile, of named: NamedArchive, _ keys: ClassKeys,
    _ write: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void
  ) throws(CommandFailure) -> PayloadReader.Reading {
    var failure: CommandFailure?
    let reading: PayloadReader.Reading
    do throws(KeyhaulError) {
      let payload = try named.archive.payload(of: file)
      reading = try PayloadReader(named.archive).read(payload, as: file, with: keys) {
        (portion) throws(KeyhaulError) in
        do throws(CommandFailure) {
          try Interruption.check()
          try write(portion)
        } catch {
          failure = error
          throw KeyhaulError(.interrupted, "the file could not be written")
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
    let digestFits = reading.payload.matches(reading.record?.digest)
    let plainByteCount = reading.payload.plainByteCount
    let isRight = reading.isRight ?? true
    if !isRight {
      session.warn(
        "\(domain)/\(path) is not what was backed up",
        why: digestFits == false
          ? "its digest differs from the one in the manifest" : "it has changed since the backup was sealed",
        try: "another copy of the backup")
    }
    if let size = reading.record?.size, size != plainByteCount {
      session.detail(
        "the manifest records \(HumanReadable.bytes(size)); Keyhaul derives the size from the file's padding")
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
        "\(did) \(UntrustedText.escaped("\(domain)/\(path)")) from \(UntrustedText.escaped(named.name)) to "
        + "\(UntrustedText.escaped(Export.shown(verb.output))) (\(HumanReadable.bytes(plainByteCount)))."
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

  init(domain: String, path: String, in list: FileList) throws(KeyhaulError) {
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
    "keyhaul inspect \(ShellQuoting.quote(archive)) --tree -v lists every file"
  }

  func failure(archive: String) -> CommandFailure {
    guard hasDomain else {
      return CommandFailure(
        .noMatch, "\(archive) has no domain \(domain)", why: nearDomain.map { "\"\($0)\" is similar" },
        try: nearDomain.map { "--domain \(ShellQuoting.quote($0))" } ?? advice(archive))
    }
    return CommandFailure(
      .noMatch, "\(archive) has no file \(path) in \(domain)", why: nearPath.map { "\"\($0)\" is similar" },
      try: nearPath.map { "--path \(ShellQuoting.quote($0))" } ?? advice(archive))
  }
}
