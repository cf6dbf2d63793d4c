import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul export --files DIR`: writes files of a backup into a folder, with their original folder structure.
struct FolderExport {
  private let command: Export
  private let folder: String

  /// Checks the flags.
  ///
  /// - Throws: `.usage` for flags that apply to items, or to one file.
  init(_ command: Export, folder: String) throws(CommandError) {
    guard !folder.isEmpty, folder != "-" else {
      throw .usage("--files cannot be \"\(folder)\"", why: "it names a folder", try: "--files DIR")
    }
    guard command.outputPath == nil else {
      throw .usage(
        "--files and --output cannot be used together", why: "files go into the folder",
        try: "use only one of them")
    }
    guard !command.reveal else {
      throw .usage(
        "--files and --reveal cannot be used together", why: "a file is exported as it is",
        try: "use only one of them")
    }
    var itemFilter = command.filter
    (itemFilter.attributes.path, itemFilter.attributes.app) = (nil, nil)
    guard try !ItemSelection(itemFilter).isRestricted else {
      throw .usage(
        "--files cannot be used with attributes of items", why: "it exports files, not items",
        try: "--domain, --app and --path")
    }
    try command.common.check(formats: [.text, .json, .csv])
    self.command = command
    self.folder = folder
  }

  func run(in session: Session) throws -> CommandExitStatus {
    let backup = try SourceResolver(session).backup(command.source)
    _ = try backup.requirePath(for: "export --files")
    try session.requireOutput(folder, differsFrom: backup.files + command.accessOptions.files, after: "--files")
    let loaded = try backup.open(storage: command.accessOptions.storage, in: session)
    let keys = try unlock(loaded, in: session)
    let list: FileList
    switch keys {
    case .some(let keys):
      try loaded.warnIfSealBroken(with: keys, in: session)
      list = try explainingErrors(of: loaded) { () throws(KeyhaulError) in try loaded.archive.fileList(with: keys) }
    case .none: list = try explainingErrors(of: loaded) { () throws(KeyhaulError) in try loaded.archive.fileList() }
    }
    let selection = FileSelection(
      domains: command.domain, app: command.filter.attributes.app, path: command.filter.attributes.path,
      in: loaded.archive)
    let plan = try explainingErrors(of: loaded) { () throws(KeyhaulError) in
      try ExtractionPlan(of: list, stored: try loaded.archive.storedFiles(), selecting: selection.contains)
    }
    guard plan.rowCount > 0 else { throw noMatchingFile(in: loaded, list) }
    let request = FileExtractor.Request(plan, choice: selection.text, into: folder)
    let report = FolderExportReport(plan, loaded.name, folder)
    loaded.warn(aboutRowsWithoutIdentifier: plan.rowWithoutIdentifierCount, in: session)
    guard !command.dryRun.isOn else {
      try explainingErrors(of: loaded) { () throws(KeyhaulError) in
        try FileExtractor().check(request, of: loaded.archive)
      }
      try report.announcePlan(in: session)
      return .ok
    }
    let files = try extract(request, loaded, list, keys: keys, in: session)
    if command.common.isCSV { try writeTable(of: files) }
    try report.announce(files, in: session)
    // A damaged manifest may omit files, so the export cannot be called complete.
    let damage = list.findings.filter(\.isDamage)
    for finding in damage where !loaded.archive.findings.contains(finding) { loaded.warn(about: finding, in: session) }
    let isManifestComplete =
      damage.isEmpty
      && !loaded.archive.findings.contains { $0.kind == .listJournalUnread || $0.kind == .manifestMissing }
    return files.isComplete && isManifestComplete && plan.rowWithoutIdentifierCount == 0 ? .ok : .partial
  }

  /// Returns the class keys; `nil` if the backup's files are not encrypted.
  private func unlock(_ loaded: LoadedBackup, in session: Session) throws(CommandError) -> ClassKeys? {
    guard loaded.archive.areFilesEncrypted else {
      if !loaded.archive.isEncrypted,
        let source = try command.accessOptions.password.origin(environment: session.environment)
      {
        throw loaded.unexpectedPassword(source)
      }
      return nil
    }
    let unlocker = BackupUnlocker(loaded, command.accessOptions.decryption, in: session)
    let hardware = try unlocker.hardwareKey()
    let key = try unlocker.key(command.accessOptions.password)
    return try unlocker.classKeys(with: key, hardware: unlocker.usableKey(hardware, with: key))
  }

  private func extract(
    _ request: FileExtractor.Request, _ loaded: LoadedBackup, _ list: FileList, keys: ClassKeys?,
    in session: Session
  ) throws(CommandError) -> ExtractedFiles {
    try Interruption.check()
    do throws(KeyhaulError) {
      return try session.progress("Writing files to \(folder)", phase: "extract", unit: .byte) {
        (report) throws(KeyhaulError) in
        try session.committing(CommittedChange("the files were written to \(folder)")) { () throws(KeyhaulError) in
          try FileExtractor().extract(
            request, from: loaded.archive, list: list, keys: keys, progress: report.updateUnlessInterrupted)
        }
      }
    } catch {
      try Interruption.check("the files already in \(folder) stay; the same command continues from there")
      throw failure(error, loaded)
    }
  }

  /// Explains errors with the names that the user typed.
  private func explainingErrors<Value: ~Copyable>(
    of loaded: LoadedBackup, _ body: () throws(KeyhaulError) -> Value
  ) throws(CommandError) -> Value {
    do throws(KeyhaulError) { return try body() } catch { throw failure(error, loaded) }
  }

  /// Returns the error with the name that the user typed: of the folder, if it could not be written.
  private func failure(_ error: KeyhaulError, _ loaded: LoadedBackup) -> CommandError {
    var failure = BackupOutput.failure(error, writing: folder, reading: loaded.name)
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

  private func noMatchingFile(in loaded: LoadedBackup, _ list: FileList) -> CommandError {
    let domains = (try? list.listing().rowCountByDomain.keys.sorted()) ?? []
    let wanted = command.domain.first ?? command.filter.attributes.app.map { "AppDomain-\($0)" }
    let near = wanted.flatMap { EditDistance.nearest(to: $0, among: domains) }
    return CommandError(
      .noMatch, "\(loaded.name) has no such file", why: near.map { "the domain \"\($0)\" is similar" },
      try: near.map { "--domain \(ShellQuoting.quote($0))" }
        ?? "keyhaul inspect \(ShellQuoting.quote(loaded.name)) --tree -v lists every file")
  }

  private func writeTable(of files: ExtractedFiles) throws(CommandError) {
    let path = (folder.hasSuffix("/") ? folder : folder + "/") + ExtractedFilesTable.name
    try ReportFile.write(to: path) { (write) throws(CommandError) in
      var failure: CommandError?
      do throws(KeyhaulError) {
        try ExtractedFilesTable.forEachPortion(ofManifest: files.manifestPath) { (bytes) throws(KeyhaulError) in
          do throws(CommandError) {
            try bytes.withRawBytes(write)
          } catch {
            failure = error
            throw KeyhaulError(.unwritable, "the table")
          }
        }
      } catch {
        throw failure ?? CommandError(backup: error, name: files.manifestPath)
      }
    }
  }
}
