package import Basics
import Dispatch
package import KeychainCrypto
import KeychainFormats
import SystemPackage

/// Writes files of a backup into a folder, in the tree that their domains and paths make.
///
/// Each file is written beside its place and renamed; it gets the time and the permissions that the list has. The manifest
/// names it when the disk keeps it. No link is followed and none that could lead out of the folder is written. A run that
/// was ended is taken up by the next one: what is there with the right size and SHA-256 is not written again. What cannot
/// be read stops nothing else.
package struct FileExtractor: Sendable {
  private let system: FileSystem
  /// How many files are worked on at once: more than there are processors, as each waits for the disk to read it.
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

  /// What is asked of a run, and what a later one is held against.
  package struct Request: Sendable {
    /// The files of the backup that are wanted, and where each goes.
    package let plan: ExtractionPlan
    /// The choice in words of its own: the same choice is the same text.
    package let choice: String
    /// The folder.
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

  /// What would be written, and whether it can be, without writing anything.
  ///
  /// - Throws: `.occupied` for a folder that is not ours, `.noSpace` where there is no room for what is not there yet.
  package func check(_ request: Request, of archive: BackupArchive) throws(KeyhaulError) {
    let standing = try ExtractionFolder.standing(
      at: request.path, header: request.header(of: archive), system: system)
    if standing != .ours { try requireRoom(for: request.plan.byteCount, at: request.path) }
  }

  /// Told how many bytes of how many are done; ends the work where it answers `false`.
  package typealias Progress = (_ done: Int64, _ total: Int64) -> Bool

  /// - Parameters:
  ///   - keys: The class keys; `nil` for a backup without a password.
  ///   - list: The backup's list of files, of which the plan was made.
  ///   - progress: Told on the caller's thread how many of the stored bytes are done; where it answers `false` the work
  ///     ends with `.interrupted`, and can be taken up.
  /// - Throws: `.occupied` for a folder that is not ours, `.noSpace`, `.unwritable`, `.interrupted`; what is wrong with
  ///   single files is in the result.
  package func extract(
    _ request: Request, from archive: BackupArchive, list: FileList, keys: ClassKeys?,
    progress: Progress
  ) throws(KeyhaulError) -> ExtractedFiles {
    try check(request, of: archive)
    let header = request.header(of: archive)
    let folder = try ExtractionFolder(at: request.path, header: header, system: system)
    defer { folder.release() }
    let (known, journal) = try writing(folder) { () throws(Errno) in
      let known = try KnownFiles(in: folder, header: header)
      try makeDirectories(of: request.plan, in: folder)
      return (known, try makeJournal(in: folder, header: header, count: request.plan.entries.count))
    }
    let job = ExtractionJob(
      archive: archive, reader: PayloadReader(archive), list: list, keys: keys,
      plan: request.plan, folder: folder, known: known, journal: journal)
    run(job, progress)
    var result = try journal.finish()
    try ExtractedDirectories(job).finish()
    try writing(folder) { () throws(Errno) in try folder.finish() }
    result.directoryCount = request.plan.directoryCount
    result.manifestPath =
      (request.path.hasSuffix("/") ? request.path : request.path + "/") + ExtractionFolder.manifestName
    return result
  }

  /// Other threads write the files, and the caller's thread syncs them to disk. If the system refuses every thread, the
  /// caller's thread does both.
  private func run(_ job: ExtractionJob, _ progress: Progress) {
    let journal = job.journal
    let total = job.plan.byteCount
    func report() {
      guard !journal.hasStopped, !progress(min(journal.doneByteCount, total), total) else { return }
      journal.stop(KeyhaulError(.interrupted, "it was stopped"))
    }
    let working = DispatchGroup()
    let isDone = { @Sendable in working.wait(timeout: .now()) == .success }
    let isContainer = job.archive.isContainer
    let workers = 0..<(isContainer ? 1 : workerCount)
    // Before the first of them begins: none may seem to be the last one.
    for _ in workers { working.enter() }
    var runningCount = 0
    for number in workers {
      let isRunning = startThread {
        ExtractionWorker(job, number).run(inStoredOrder: isContainer)
      } _: {
        working.leave()
        if isDone() { journal.wake() }
      }
      if isRunning { runningCount += 1 } else { working.leave() }
    }
    if runningCount == 0 {
      withoutActuallyEscaping(report) { report in
        ExtractionWorker(job, 0) {
          report()
          journal.settleFullBatch()
        }.run(inStoredOrder: isContainer)
      }
    }
    journal.settle(until: isDone, reporting: report)
  }

  private func makeDirectories(of plan: ExtractionPlan, in folder: ExtractionFolder) throws(Errno) {
    // A directory stands behind its parent.
    for number in plan.directories.indices.dropFirst() {
      let directory = plan.directories[number]
      let parent = try folder.openDirectory(TreeNames.names(of: directory.parent, in: plan.directories))
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

  private func requireRoom(for byteCount: Int64, at path: String) throws(KeyhaulError) {
    let place = nearestStanding(path)
    let free: Int64
    do throws(Errno) {
      free = try system.freeByteCount(in: try system.openDirectory(place))
    } catch {
      throw BackupPlacement(system: system).explain(error, path: place, needs: byteCount)
    }
    guard free >= byteCount else {
      throw KeyhaulError(
        .noSpace,
        "\(HumanReadable.grouped(free)) bytes are free at \(UntrustedText.quoted(path)), and \(HumanReadable.grouped(byteCount)) are needed"
      )
    }
  }

  /// The path itself, or the first one above it at which something stands.
  private func nearestStanding(_ path: String) -> String {
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

/// All that the workers of a run share.
struct ExtractionJob: Sendable {
  let archive: BackupArchive
  let reader: PayloadReader
  let list: FileList
  let keys: ClassKeys?
  let plan: ExtractionPlan
  let folder: ExtractionFolder
  let known: KnownFiles
  let journal: ExtractionJournal
}
