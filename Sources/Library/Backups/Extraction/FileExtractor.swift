package import Basics
import Dispatch
package import KeychainCrypto
import KeychainFormats
import SystemPackage

/// Writes files of a backup to a folder tree by domain and path.
///
/// Each file is written under a temporary name, gets the recorded time and permissions, and is renamed. The manifest
/// lists it after it is synced. Links are not followed, and links that may lead out of the folder are not written. An
/// interrupted run can be resumed: files with the correct size and SHA-256 digest are not written again. Unreadable
/// files do not stop the extraction.
package struct FileExtractor: Sendable {
  private let system: FileSystem
  /// The number of concurrent workers. It does not depend on the number of processors, because workers wait for the
  /// disk.
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

  package static let standardWorkerCount = 4

  /// The parameters of an extraction, which a resumed run must repeat.
  package struct Request: Sendable {
    /// The selected files and their paths.
    package let plan: ExtractionPlan
    /// The selection as text. Equal selections have equal texts.
    package let choice: String
    /// The path of the folder.
    package let path: String

    package init(_ plan: ExtractionPlan, choice: String, into path: String) {
      self.plan = plan
      self.choice = choice
      self.path = path
    }

    func header(of archive: BackupArchive) -> JSONValue {
      ["format": .string(ExtractionFolder.format), "backup": .string(archive.digest), "chosen": .string(choice)]
    }
  }

  /// Checks whether an extraction is possible, without writing anything.
  ///
  /// - Throws: `.occupied` if the folder contains other files, `.noSpace` if there is not enough space for a new
  ///   folder.
  package func check(_ request: Request, of archive: BackupArchive) throws(KeyhaulError) {
    let state = try ExtractionFolder.state(at: request.path, header: request.header(of: archive), system: system)
    if state != .resumable { try requireSpace(for: request.plan.byteCount, at: request.path) }
  }

  /// Receives the number of completed bytes, and of all bytes. Returns `false` to stop.
  package typealias Progress = (_ done: Int64, _ total: Int64) -> Bool

  /// Extracts the files.
  ///
  /// - Parameters:
  ///   - keys: The class keys, or `nil` if the backup has no password.
  ///   - list: The backup's list of files, from which the plan was created.
  ///   - progress: Receives the number of completed stored bytes on the caller's thread. If it returns `false`, the
  ///     extraction ends with `.interrupted` and can be resumed.
  /// - Returns: The result, including the errors of single files.
  /// - Throws: `.occupied` if the folder contains other files, `.noSpace`, `.unwritable`, `.interrupted`.
  package func extract(
    _ request: Request, from archive: BackupArchive, list: FileList, keys: ClassKeys?,
    progress: Progress
  ) throws(KeyhaulError) -> ExtractedFiles {
    try check(request, of: archive)
    let header = request.header(of: archive)
    let folder = try ExtractionFolder(at: request.path, header: header, system: system)
    defer { folder.release() }
    let (priorExtraction, journal) = try writing(folder) { () throws(Errno) in
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
    try writing(folder) { () throws(Errno) in try folder.finish() }
    result.directoryCount = request.plan.directoryCount
    result.manifestPath =
      (request.path.hasSuffix("/") ? request.path : request.path + "/") + ExtractionFolder.manifestName
    return result
  }

  /// Runs the workers on other threads, and syncs the files on the caller's thread. If the system refuses every thread,
  /// the caller's thread does both.
  private func run(_ job: ExtractionJob, _ progress: Progress) {
    let journal = job.journal
    let total = job.plan.byteCount
    func report() {
      guard !journal.hasStopped, !progress(min(journal.doneByteCount, total), total) else { return }
      journal.stop(KeyhaulError(.interrupted, "it was stopped"))
    }
    let runningWorkers = DispatchGroup()
    let isDone = { @Sendable in runningWorkers.wait(timeout: .now()) == .success }
    let isContainer = job.archive.isContainer
    let workers = 0..<(isContainer ? 1 : workerCount)
    // All workers are counted before the first one starts, so that none appears to be the last.
    for _ in workers { runningWorkers.enter() }
    var runningCount = 0
    for number in workers {
      let work = { @Sendable in ExtractionWorker(job, number).run(inStoredOrder: isContainer) }
      let ended = { @Sendable in
        runningWorkers.leave()
        if isDone() { journal.wake() }
      }
      if startThread(work, ended) { runningCount += 1 } else { runningWorkers.leave() }
    }
    if runningCount == 0 {
      // The only worker reports the progress and syncs full batches between its files.
      withoutActuallyEscaping(report) { report in
        ExtractionWorker(job, 0) {
          report()
          journal.flushFullBatch()
        }.run(inStoredOrder: isContainer)
      }
    }
    journal.flush(until: isDone, reporting: report)
  }

  private func makeDirectories(of plan: ExtractionPlan, in folder: ExtractionFolder) throws(Errno) {
    // A directory follows its parent.
    for directory in plan.directories.dropFirst() {
      let parent = try folder.openDirectory(ExtractionPaths.names(of: directory.parent, in: plan.directories))
      _ = try system.openOrMakeDirectory(directory.name, in: parent.descriptor)
    }
  }

  private func makeJournal(
    in folder: ExtractionFolder, header: JSONValue, count: Int
  ) throws(Errno) -> ExtractionJournal {
    try? system.remove(ExtractionFolder.journalName.systemName, in: folder.staging.descriptor, isDirectory: false)
    let file = try system.createFile(ExtractionFolder.journalName, in: folder.staging.descriptor)
    return try ExtractionJournal(file, in: folder, header: header, count: count)
  }

  private func requireSpace(for byteCount: Int64, at path: String) throws(KeyhaulError) {
    let existingPath = nearestExistingAncestor(of: path)
    let free: Int64
    do throws(Errno) {
      free = try system.freeByteCount(in: try system.openDirectory(existingPath))
    } catch {
      throw BackupInstaller(system: system).explain(error, path: existingPath, needs: byteCount)
    }
    guard free >= byteCount else {
      throw KeyhaulError(
        .noSpace,
        "\(HumanReadable.grouped(free)) bytes are free at \(UntrustedText.quoted(path)), and \(HumanReadable.grouped(byteCount)) are needed"
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

  private func writing<Value>(
    _ folder: ExtractionFolder, _ body: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    do throws(Errno) { return try body() } catch { throw folder.explain(error) }
  }
}

/// The shared state of an extraction's workers.
struct ExtractionJob: Sendable {
  let archive: BackupArchive
  let reader: PayloadReader
  let list: FileList
  let keys: ClassKeys?
  let plan: ExtractionPlan
  let folder: ExtractionFolder
  let priorExtraction: PriorExtraction
  let journal: ExtractionJournal
}
