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
      list = try explaining(named) { () throws(BackupArchiveError) in try named.archive.fileList(with: keys) }
    case .none: list = try explaining(named) { () throws(BackupArchiveError) in try named.archive.fileList() }
    }
    let choice = FileChoice(
      domains: verb.domain, app: verb.chosen.attributes.app, path: verb.chosen.attributes.path, in: named.archive)
    let plan = try explaining(named) { () throws(BackupArchiveError) in
      try ExtractionPlan(of: list, stored: try named.archive.storedFiles(), choosing: choice.admits)
    }
    guard plan.rowCount > 0 else { throw nothingChosen(in: named, list) }
    let request = FileExtractor.Request(plan, choice: choice.text, into: folder)
    let report = FilesReport(plan, named.name, folder)
    named.warn(ofRowsWithoutIdentifier: plan.rowWithoutIdentifierCount, in: session)
    guard !verb.dryRun.isOn else {
      try explaining(named) { () throws(BackupArchiveError) in try FileExtractor().check(request, of: named.archive) }
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
    _ request: FileExtractor.Request, _ named: NamedArchive, _ list: FileList, keys: consuming ClassKeys?,
    in session: Session
  ) throws(CommandFailure) -> ExtractedFiles {
    try Interruption.check()
    let keys = HandedOver(keys)
    do throws(BackupArchiveError) {
      return try session.progress("Writing files to \(folder)", phase: "extract", unit: .byte) {
        (report) throws(BackupArchiveError) in
        try session.changing(DoneChange("the files were written to \(folder)")) { () throws(BackupArchiveError) in
          try FileExtractor().extract(
            request, from: named.archive, list: list, keys: keys.take(), progress: report.orInterrupted)
        }
      }
    } catch {
      try Interruption.check("the files already in \(folder) stay; the same command continues from there")
      throw failure(error, named)
    }
  }

  private func explaining<Value: ~Copyable>(
    _ named: NamedArchive, _ body: () throws(BackupArchiveError) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(BackupArchiveError) { return try body() } catch { throw failure(error, named) }
  }

  /// In the words of what the user named, which for what cannot be written is the folder.
  private func failure(_ error: BackupArchiveError, _ named: NamedArchive) -> CommandFailure {
    var failure = ArchiveOutput.failure(error, writing: folder, reading: named.name)
    switch error.code {
    case .occupied:
      failure.advice = "a new folder; or the command that started this one, if the backup is unchanged"
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
      try: near.map { "--domain \(ShellWord.quoted($0))" }
        ?? "keyhaul inspect \(ShellWord.quoted(named.name)) --tree -v lists every file")
  }

  private func writeTable(of files: ExtractedFiles) throws(CommandFailure) {
    let path = (folder.hasSuffix("/") ? folder : folder + "/") + ExtractedFilesTable.name
    try ReportFile.write(to: path) { (write) throws(CommandFailure) in
      var failure: CommandFailure?
      do throws(BackupArchiveError) {
        try ExtractedFilesTable.forEachPortion(ofManifest: files.manifestPath) { (bytes) throws(BackupArchiveError) in
          do throws(CommandFailure) {
            try bytes.withRawBytes(write)
          } catch {
            failure = error
            throw BackupArchiveError(.unwritable, "the table")
          }
        }
      } catch {
        throw failure ?? CommandFailure(archive: error, name: files.manifestPath)
      }
    }
  }
}
