import KeyhaulKit
import Reports

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
    itemFilter.attributes.path = nil
    itemFilter.attributes.app = nil
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
    let keys = try classKeys(of: loaded, in: session)
    let fileList = try fileList(of: loaded, keys: keys, in: session)
    let selection = FileSelection(
      domains: command.domain, app: command.filter.attributes.app, path: command.filter.attributes.path,
      in: loaded.archive)
    let plan = try plan(for: loaded, fileList, selecting: selection)
    loaded.warn(aboutRowsWithoutIdentifier: plan.rowWithoutIdentifierCount, in: session)
    let request = FileExtractor.Request(plan, selection: selection.text, into: folder)
    let report = FolderExportReport(plan, from: loaded.name, to: folder)
    guard !command.dryRun.isOn else {
      try explainingErrors(of: loaded) { () throws(KeyhaulError) in
        try FileExtractor().check(request, of: loaded.archive)
      }
      try report.announcePlan(in: session)
      return .ok
    }
    let files = try extract(request, loaded, fileList, keys: keys, in: session)
    if command.common.isCSV { try writeTable(of: files) }
    try report.announce(files, in: session)
    let isManifestComplete = checkManifest(of: loaded, fileList, in: session)
    return files.isComplete && isManifestComplete && plan.rowWithoutIdentifierCount == 0 ? .ok : .partial
  }

  /// Returns the files that the manifest lists. Warns if the class keys show that the seal does not match.
  private func fileList(
    of loaded: LoadedBackup, keys: ClassKeys?, in session: Session
  ) throws(CommandError) -> FileList {
    switch keys {
    case .some(let keys):
      try loaded.warnIfSealBroken(with: keys, in: session)
      return try explainingErrors(of: loaded) { () throws(KeyhaulError) in try loaded.archive.fileList(with: keys) }
    case .none:
      return try explainingErrors(of: loaded) { () throws(KeyhaulError) in try loaded.archive.fileList() }
    }
  }

  /// Returns the plan for the files that the user selected.
  ///
  /// - Throws: `.noMatch` if no file is selected.
  private func plan(
    for loaded: LoadedBackup, _ fileList: FileList, selecting selection: FileSelection
  ) throws(CommandError) -> ExtractionPlan {
    let plan = try explainingErrors(of: loaded) { () throws(KeyhaulError) in
      try ExtractionPlan(of: fileList, stored: try loaded.archive.storedFiles(), selecting: selection.contains)
    }
    guard plan.rowCount > 0 else { throw noMatchingFile(in: loaded, fileList) }
    return plan
  }

  /// Warns about damage that was found while the manifest was read. Returns whether the manifest lists every file of the
  /// backup. A damaged manifest may omit files.
  private func checkManifest(of loaded: LoadedBackup, _ fileList: FileList, in session: Session) -> Bool {
    let damage = fileList.findings.filter(\.isDamage)
    for finding in damage where !loaded.archive.findings.contains(finding) { loaded.warn(about: finding, in: session) }
    let lacksRows = loaded.archive.findings.contains { $0.kind == .listJournalUnread || $0.kind == .manifestMissing }
    return damage.isEmpty && !lacksRows
  }

  /// Returns the class keys; `nil` if the backup's files are not encrypted.
  private func classKeys(of loaded: LoadedBackup, in session: Session) throws(CommandError) -> ClassKeys? {
    guard loaded.archive.areFilesEncrypted else {
      if !loaded.archive.isEncrypted,
        let source = try command.accessOptions.password.origin(environment: session.environment)
      {
        throw loaded.unexpectedPassword(source)
      }
      return nil
    }
    let unlocker = BackupUnlocker(loaded, command.accessOptions.decryption, in: session)
    let deviceKey = try unlocker.deviceKey()
    let key = try unlocker.key(command.accessOptions.password)
    return try unlocker.classKeys(with: key, deviceKey: unlocker.usableKey(deviceKey, with: key))
  }

  private func extract(
    _ request: FileExtractor.Request, _ loaded: LoadedBackup, _ fileList: FileList, keys: ClassKeys?,
    in session: Session
  ) throws(CommandError) -> ExtractedFiles {
    try Interruption.check()
    do throws(KeyhaulError) {
      return try session.progress("Writing files to \(folder)", phase: "extract", unit: .byte) {
        (report) throws(KeyhaulError) in
        try session.committing(CommittedChange("the files were written to \(folder)")) { () throws(KeyhaulError) in
          try FileExtractor().extract(
            request, from: loaded.archive, list: fileList, keys: keys, progress: report.updateUnlessInterrupted)
        }
      }
    } catch {
      try Interruption.check("the files already in \(folder) stay; the same command continues from there")
      throw commandError(for: error, loaded)
    }
  }

  /// Explains errors with the names that the user typed.
  private func explainingErrors<Value: ~Copyable>(
    of loaded: LoadedBackup, _ body: () throws(KeyhaulError) -> Value
  ) throws(CommandError) -> Value {
    do throws(KeyhaulError) {
      return try body()
    } catch {
      throw commandError(for: error, loaded)
    }
  }

  /// Returns the error to show. It names the folder if the folder could not be written; otherwise it names the backup.
  private func commandError(for error: KeyhaulError, _ loaded: LoadedBackup) -> CommandError {
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

  private func noMatchingFile(in loaded: LoadedBackup, _ fileList: FileList) -> CommandError {
    let domains = (try? fileList.listing().rowCountByDomain.keys.sorted()) ?? []
    let requestedDomain = command.domain.first ?? command.filter.attributes.app.map { "AppDomain-\($0)" }
    let similarDomain = requestedDomain.flatMap { EditDistance.nearest(to: $0, among: domains) }
    return CommandError(
      .noMatch, "\(loaded.name) has no such file", why: similarDomain.map { "the domain \"\($0)\" is similar" },
      try: similarDomain.map { "--domain \(ShellQuoting.quote($0))" }
        ?? "keyhaul inspect \(ShellQuoting.quote(loaded.name)) --tree -v lists every file")
  }

  /// Writes the CSV table of the files into the folder.
  private func writeTable(of files: ExtractedFiles) throws(CommandError) {
    let path = (folder.hasSuffix("/") ? folder : folder + "/") + ExtractedFilesTable.name
    try OutputFile.write(to: path) { (write) throws(CommandError) in
      var failure: CommandError?
      do throws(KeyhaulError) {
        try ExtractedFilesTable.forEachChunk(ofManifest: files.manifestPath) { (bytes) throws(KeyhaulError) in
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
