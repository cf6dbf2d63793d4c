package import Basics
import Dispatch
package import KeychainCrypto
import KeychainFormats
import SystemPackage

/// Writes the files of a backup to a folder, at `DOMAIN/PATH` for each file.
///
/// A file is written under a temporary name, with the recorded time and permissions, and is then renamed. After the
/// system has synced the file, the extraction's own manifest (`ExtractionFolder.manifestName`) lists it. An unreadable
/// file is listed with its error and does not stop the extraction.
///
/// Links in the folder are never followed. A link of the backup is not written if its target may be outside the folder.
///
/// An interrupted extraction can be resumed. The next run keeps each file that still has the size and the SHA-256
/// digest from an earlier run.
package struct FileExtractor: Sendable {
  private let system: FileSystem
  /// The number of threads that extract a directory. One thread extracts a container file, in the order of its entries.
  private let workerCount: Int
  private let startThread: SecureThread.Starter

  package init(
    system: FileSystem = .real, workerCount: Int = FileExtractor.standardWorkerCount,
    startThread: @escaping SecureThread.Starter = SecureThread.start
  ) {
    self.system = system
    self.workerCount = max(1, workerCount)
    self.startThread = startThread
  }

  /// The usual number of workers on any computer. Workers mostly wait for the disk, not for a processor.
  package static let standardWorkerCount = 4

  /// The files to extract and the target folder. A run that resumes an extraction must have an equal request.
  package struct Request: Sendable {
    /// The selected files and their paths.
    package let plan: ExtractionPlan
    /// The filters that selected the files, as text. Equal filters have equal texts.
    package let selection: String
    /// The path of the target folder.
    package let path: String

    package init(_ plan: ExtractionPlan, selection: String, into path: String) {
      self.plan = plan
      self.selection = selection
      self.path = path
    }

    /// Returns the first line of the extraction's manifest. Only a run with an equal line can resume the extraction.
    func header(for archive: BackupArchive) -> JSONValue {
      ["format": .string(ExtractionFolder.format), "backup": .string(archive.digest), "chosen": .string(selection)]
    }
  }

  /// Checks whether an extraction is possible, without writing anything.
  ///
  /// - Throws: `.occupied` if the folder contains other files; `.noSpace` if a new extraction needs more space than is
  ///   free.
  package func check(_ request: Request, of archive: BackupArchive) throws(KeyhaulError) {
    let state = try ExtractionFolder.state(at: request.path, header: request.header(for: archive), system: system)
    if state != .resumable { try requireSpace(for: request.plan.byteCount, at: request.path) }
  }

  /// A function that receives the progress in stored bytes. It returns `false` to stop the extraction.
  package typealias Progress = (_ finishedByteCount: Int64, _ totalByteCount: Int64) -> Bool

  /// Extracts the files of a request.
  ///
  /// - Parameters:
  ///   - request: The files and the folder.
  ///   - archive: The backup.
  ///   - list: The backup's list of files, from which the plan was created.
  ///   - keys: The class keys, or `nil` if the backup has no password.
  ///   - progress: Called repeatedly on the caller's thread. If it returns `false`, the extraction ends with
  ///     `.interrupted` and can be resumed.
  /// - Returns: The result, including the errors of single files.
  /// - Throws: `.occupied` if the folder contains other files; `.noSpace`, `.unwritable` or `.interrupted`; the error of
  ///   a backup that cannot be read.
  package func extract(
    _ request: Request, from archive: BackupArchive, list: FileList, keys: ClassKeys?,
    progress: Progress
  ) throws(KeyhaulError) -> ExtractedFiles {
    try check(request, of: archive)
    let header = request.header(for: archive)
    let folder = try ExtractionFolder(at: request.path, header: header, system: system)
    defer { folder.release() }
    let (priorExtraction, journal) = try convertingErrors(in: folder) { () throws(Errno) in
      // The results of earlier runs are read before the new journal replaces the old one.
      let priorExtraction = try PriorExtraction(in: folder, header: header)
      try makeDirectories(of: request.plan, in: folder)
      return (priorExtraction, try makeJournal(in: folder, header: header, count: request.plan.entries.count))
    }
    let job = ExtractionJob(
      archive: archive, reader: PayloadReader(archive), list: list, keys: keys,
      plan: request.plan, folder: folder, priorExtraction: priorExtraction, journal: journal)
    run(job, progress)
    var result = try journal.finish()
    try ExtractedDirectories(job).finish()
    try convertingErrors(in: folder) { () throws(Errno) in try folder.finish() }
    result.directoryCount = request.plan.directoryCount
    result.manifestPath =
      (request.path.hasSuffix("/") ? request.path : request.path + "/") + ExtractionFolder.manifestName
    return result
  }

  /// Extracts the files on other threads, while the caller's thread syncs finished files and reports the progress.
  ///
  /// If the system starts no thread at all, the caller's thread also extracts the files. The journal records the result,
  /// and the error that stopped the extraction.
  private func run(_ job: ExtractionJob, _ progress: Progress) {
    let journal = job.journal
    let total = job.plan.byteCount
    func report() {
      guard !journal.hasStopped, !progress(min(journal.readByteCount, total), total) else { return }
      journal.stop(KeyhaulError(.interrupted, "it was stopped"))
    }
    let runningWorkers = DispatchGroup()
    let haveWorkersEnded = { @Sendable in runningWorkers.wait(timeout: .now()) == .success }
    let isContainer = job.archive.isContainer
    let workers = 0..<(isContainer ? 1 : workerCount)
    // All workers enter the group before the first one starts. Otherwise, a fast worker could leave the group empty.
    for _ in workers { runningWorkers.enter() }
    var startedCount = 0
    for number in workers {
      let work = { @Sendable in ExtractionWorker(job, number).run(inStoredOrder: isContainer) }
      let workerDidEnd = { @Sendable in
        runningWorkers.leave()
        // The caller's thread may be waiting for a full batch, but no worker is left to fill it.
        if haveWorkersEnded() { journal.wake() }
      }
      if startThread(work, workerDidEnd) { startedCount += 1 } else { runningWorkers.leave() }
    }
    if startedCount == 0 {
      // No other thread exists, so this thread reports the progress and syncs full batches while it extracts.
      withoutActuallyEscaping(report) { report in
        ExtractionWorker(job, 0) {
          report()
          journal.flushFullBatch()
        }.run(inStoredOrder: isContainer)
      }
    }
    journal.flush(until: haveWorkersEnded, reporting: report)
  }

  /// Creates the directories of the plan that do not exist yet.
  private func makeDirectories(of plan: ExtractionPlan, in folder: ExtractionFolder) throws(Errno) {
    // The first directory is the folder itself. The plan has each other directory after its parent.
    for directory in plan.directories.dropFirst() {
      let parent = try folder.openDirectory(ExtractionPaths.names(of: directory.parent, in: plan.directories))
      _ = try system.openOrMakeDirectory(directory.name, in: parent.descriptor)
    }
  }

  /// Creates an empty journal, which replaces the journal of an interrupted run.
  private func makeJournal(
    in folder: ExtractionFolder, header: JSONValue, count: Int
  ) throws(Errno) -> ExtractionJournal {
    try? system.remove(ExtractionFolder.journalName.systemName, in: folder.staging.descriptor, isDirectory: false)
    let file = try system.createFile(ExtractionFolder.journalName, in: folder.staging.descriptor)
    return try ExtractionJournal(file, in: folder, header: header, count: count)
  }

  /// Checks that the file system of a path, which need not exist, has enough free space.
  private func requireSpace(for byteCount: Int64, at path: String) throws(KeyhaulError) {
    let existingPath = nearestExistingAncestor(of: path)
    let freeByteCount: Int64
    do throws(Errno) {
      freeByteCount = try system.freeByteCount(in: try system.openDirectory(existingPath))
    } catch {
      throw BackupInstaller(system: system).explain(error, path: existingPath, needs: byteCount)
    }
    guard freeByteCount >= byteCount else {
      throw KeyhaulError(
        .noSpace,
        "\(HumanReadable.grouped(freeByteCount)) bytes are free at \(UntrustedText.quoted(path)), and \(HumanReadable.grouped(byteCount)) are needed"
      )
    }
  }

  /// Returns the path, or its closest existing parent.
  private func nearestExistingAncestor(of path: String) -> String {
    var path = path
    while (try? system.status(of: path, followsLink: true)) == nil, let parent = DestinationPath(path)?.parent {
      path = parent
    }
    return path
  }

  /// Runs system calls, and adds the folder's path to their error.
  private func convertingErrors<Value>(
    in folder: ExtractionFolder, _ body: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    do throws(Errno) { return try body() } catch { throw folder.explain(error) }
  }
}

/// The inputs and outputs of an extraction, which its workers share.
struct ExtractionJob: Sendable {
  let archive: BackupArchive
  let reader: PayloadReader
  let list: FileList
  /// The class keys, or `nil` if the backup has no password.
  let keys: ClassKeys?
  let plan: ExtractionPlan
  let folder: ExtractionFolder
  /// The files that earlier runs have written.
  let priorExtraction: PriorExtraction
  /// The distributor of the plan's entries to the workers, which also collects their results.
  let journal: ExtractionJournal
}
