import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

/// Writes one file after the other, as long as there are any.
final class ExtractionWorker {
  let job: ExtractionJob
  /// In the staging directory, what this worker is writing.
  let temporaryName: String
  var system: FileSystem { job.folder.system }
  /// The directory that was opened last: files of one directory stand together.
  private var parent: (number: Int, handle: DirectoryHandle)?

  init(_ job: ExtractionJob, _ number: Int) {
    self.job = job
    temporaryName = "\(number).tmp"
  }

  /// Why the work as a whole cannot go on, as against a file that cannot be read.
  enum Failure: Error {
    case stop(BackupArchiveError)
    case file(BackupArchiveError)
  }

  func run(inStoredOrder: Bool) {
    do throws(BackupArchiveError) {
      let reader = try job.list.reader()
      if inStoredOrder {
        try runInStoredOrder(reader)
      } else {
        while let number = job.journal.next() { try enter(number, of: reader, at: number, payload: nil) }
      }
    } catch {
      job.journal.stop(error)
    }
  }

  /// Reads one file's payloads as they come, then what is left: links, empty files, and what is not stored.
  private func runInStoredOrder(_ reader: FileList.Reader) throws(BackupArchiveError) {
    var numbers: [StoredPayloads.Name: Int] = [:]
    for (number, entry) in job.plan.entries.enumerated() where entry.refusal == nil {
      guard let file = try reader.file(at: entry.place), file.kind == .file,
        let name = StoredPayloads.Name(file.fileIdentifier)
      else { continue }
      numbers[name] = number
    }
    var isDone = [Bool](repeating: false, count: job.plan.entries.count)
    try job.archive.forEachPayload(of: try job.archive.storedFiles()) { (payload) throws(BackupArchiveError) in
      guard let name = StoredPayloads.Name(payload.fileIdentifier), let number = numbers[name], !isDone[number] else {
        return
      }
      guard let place = job.journal.next() else { throw BackupArchiveError(.interrupted, "it was stopped") }
      isDone[number] = true
      try enter(number, of: reader, at: place, payload: payload)
    }
    for number in isDone.indices where !isDone[number] {
      guard let place = job.journal.next() else { return }
      try enter(number, of: reader, at: place, payload: nil)
    }
  }

  /// - Parameters:
  ///   - place: Where it stands in the manifest.
  ///   - payload: What a reader has come to; `nil` to look for it.
  private func enter(
    _ number: Int, of reader: FileList.Reader, at place: Int, payload: StoredPayload?
  ) throws(BackupArchiveError) {
    let entry = job.plan.entries[number]
    guard let file = try reader.file(at: entry.place) else {
      throw BackupArchiveError(.damaged, "a row of the manifest is missing")
    }
    let record: FileRecord?
    do throws(BackupArchiveError) {
      record = try file.record()
    } catch {
      return enter(.failed(error), file, nil, entry, at: place)
    }
    if let refusal = entry.refusal { return enter(.failed(refusal), file, record, entry, at: place) }
    do throws(Failure) {
      var wasKept = false
      let outcome = try outcome(of: entry, file, record, payload, &wasKept)
      enter(outcome, file, record, entry, at: place, wasKept: wasKept)
    } catch {
      switch error {
      case .stop(let reason): throw reason
      case .file(let reason): enter(.failed(reason), file, record, entry, at: place)
      }
    }
  }

  private func enter(
    _ outcome: ExtractedRecord.Outcome, _ file: ListedFile, _ record: FileRecord?, _ entry: ExtractionPlan.Entry,
    at place: Int, wasKept: Bool = false
  ) {
    let isThere =
      switch outcome {
      case .written, .linked: true
      case .leftOut, .failed: false
      }
    let path = isThere ? job.plan.path(of: entry) : nil
    job.journal.enter(
      ExtractedRecord(file: file, record: record, path: path, outcome: outcome), wasKept: wasKept, at: place)
  }

  private func outcome(
    of entry: ExtractionPlan.Entry, _ file: ListedFile, _ record: FileRecord?, _ payload: StoredPayload?,
    _ wasKept: inout Bool
  ) throws(Failure) -> ExtractedRecord.Outcome {
    switch file.kind {
    case .directory, .other: return .leftOut(.unfinished)
    case .link:
      let depth = TreeNames.names(of: entry.directory, in: job.plan.directories).count
      guard let target = record?.target, LinkRule.staysInside(target, depth: depth) else {
        return .leftOut(.leadsOut)
      }
      try writing { () throws(Errno) in try link(entry, to: target, modified: record?.lastModified) }
      return .linked(target: target)
    case .file:
      let directory = try writing { () throws(Errno) -> DirectoryHandle in try self.directory(of: entry) }
      // What the source has not any more is not certified again.
      let isThere = entry.isStored || record?.needsPayload == false
      if isThere, let known = try kept(file, entry, in: directory) {
        wasKept = true
        job.journal.add(known.byteCount)
        return .written(known)
      }
      return try write(entry, file, record, payload, into: directory)
    }
  }

  /// What an earlier run wrote of a file, where that is there as it was written.
  private func kept(
    _ file: ListedFile, _ entry: ExtractionPlan.Entry, in directory: DirectoryHandle
  ) throws(Failure) -> ExtractedContent? {
    guard let known = job.known[file.fileIdentifier] else { return nil }
    let holds = try writing { () throws(Errno) -> Bool in try self.holds(known, entry.name, in: directory) }
    return holds ? known : nil
  }

  func writing<Value>(_ body: () throws(Errno) -> Value) throws(Failure) -> Value {
    do throws(Errno) { return try body() } catch { throw .stop(job.folder.explain(error)) }
  }

  func directory(of entry: ExtractionPlan.Entry) throws(Errno) -> DirectoryHandle {
    if let parent, parent.number == entry.directory { return parent.handle }
    let handle = try job.folder.openDirectory(TreeNames.names(of: entry.directory, in: job.plan.directories))
    parent = (entry.directory, handle)
    return handle
  }
}
