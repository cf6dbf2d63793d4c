import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

/// A worker that writes files until none are left.
final class ExtractionWorker {
  let job: ExtractionJob
  /// The name of the worker's temporary file in the staging directory.
  let temporaryName: String
  var system: FileSystem { job.folder.system }
  /// The last opened directory, because files of a directory are usually adjacent.
  private var parent: (index: Int, handle: DirectoryHandle)?
  /// Called before each file, and before each chunk of a file.
  private let beforeStep: () -> Void

  init(_ job: ExtractionJob, _ number: Int, beforeStep: @escaping () -> Void = {}) {
    self.job = job
    self.beforeStep = beforeStep
    temporaryName = "\(number).tmp"
  }

  /// Returns the position in the manifest of the next entry to extract, or `nil` if no entry is left or the extraction
  /// was stopped.
  private func next() -> Int? {
    beforeStep()
    return job.journal.next()
  }

  /// The failure of the whole extraction or of a single file.
  enum Failure: Error {
    case stop(KeyhaulError)
    case file(KeyhaulError)
  }

  func run(inStoredOrder: Bool) {
    do throws(KeyhaulError) {
      let reader = try job.list.reader()
      if inStoredOrder {
        try runInStoredOrder(reader)
      } else {
        while let position = next() { try extract(position, of: reader, at: position, payload: nil) }
      }
    } catch {
      job.journal.stop(error)
    }
  }

  /// Writes the files in the order of the stored payloads, then links, empty files, and missing payloads.
  private func runInStoredOrder(_ reader: FileList.Reader) throws(KeyhaulError) {
    var indices: [StoredPayloads.Identifier: Int] = [:]
    for (index, entry) in job.plan.entries.enumerated() where entry.refusal == nil {
      guard let file = try reader.file(at: entry.location), file.kind == .file,
        let identifier = StoredPayloads.Identifier(file.fileIdentifier)
      else { continue }
      indices[identifier] = index
    }
    var isExtracted = [Bool](repeating: false, count: job.plan.entries.count)
    try job.archive.forEachPayload(of: try job.archive.storedFiles()) { (payload) throws(KeyhaulError) in
      guard let identifier = StoredPayloads.Identifier(payload.fileIdentifier), let index = indices[identifier],
        !isExtracted[index]
      else {
        return
      }
      guard let position = next() else { throw KeyhaulError(.interrupted, "it was stopped") }
      isExtracted[index] = true
      try extract(index, of: reader, at: position, payload: payload)
    }
    for index in isExtracted.indices where !isExtracted[index] {
      guard let position = next() else { return }
      try extract(index, of: reader, at: position, payload: nil)
    }
  }

  /// Extracts an entry and records its result.
  ///
  /// - Parameters:
  ///   - index: The index of the entry in the plan.
  ///   - position: The position in the manifest.
  ///   - payload: The current payload of a container, or `nil` to search for it.
  private func extract(
    _ index: Int, of reader: FileList.Reader, at position: Int, payload: StoredPayload?
  ) throws(KeyhaulError) {
    let entry = job.plan.entries[index]
    guard let file = try reader.file(at: entry.location) else {
      throw KeyhaulError(.damaged, "a row of the manifest is missing")
    }
    let record: FileRecord?
    do throws(KeyhaulError) {
      record = try file.record()
    } catch {
      let listedEntry = ListedEntry(entry: entry, file: file, record: nil)
      return recordResult(.failed(error), of: listedEntry, at: position)
    }
    let listedEntry = ListedEntry(entry: entry, file: file, record: record)
    if let refusal = entry.refusal { return recordResult(.failed(refusal), of: listedEntry, at: position) }
    do throws(Failure) {
      var wasKept = false
      let outcome = try outcome(of: listedEntry, payload, wasKept: &wasKept)
      recordResult(outcome, of: listedEntry, at: position, wasKept: wasKept)
    } catch {
      switch error {
      case .stop(let reason): throw reason
      case .file(let reason): recordResult(.failed(reason), of: listedEntry, at: position)
      }
    }
  }

  /// An entry of the plan, with its row and record in the list of files.
  struct ListedEntry {
    let entry: ExtractionPlan.Entry
    let file: ListedFile
    let record: FileRecord?
  }

  private func recordResult(
    _ outcome: ExtractedRecord.Outcome, of listedEntry: ListedEntry, at position: Int, wasKept: Bool = false
  ) {
    let wasWritten =
      switch outcome {
      case .written, .linked: true
      case .omitted, .failed: false
      }
    let path = wasWritten ? job.plan.path(of: listedEntry.entry) : nil
    job.journal.record(
      ExtractedRecord(file: listedEntry.file, record: listedEntry.record, path: path, outcome: outcome),
      wasKept: wasKept, at: position)
  }

  /// Writes an entry, and returns the result.
  ///
  /// - Parameter wasKept: Set to `true` if an earlier run has written the file.
  private func outcome(
    of listedEntry: ListedEntry, _ payload: StoredPayload?, wasKept: inout Bool
  ) throws(Failure) -> ExtractedRecord.Outcome {
    let (entry, record) = (listedEntry.entry, listedEntry.record)
    switch listedEntry.file.kind {
    case .directory, .other: return .omitted(.unfinished)
    case .link:
      let depth = ExtractionPaths.names(of: entry.directory, in: job.plan.directories).count
      guard let target = record?.target, SymlinkPolicy.staysInside(target, depth: depth) else {
        return .omitted(.targetOutsideFolder)
      }
      try writing { () throws(Errno) in try link(entry, to: target, modified: record?.lastModified) }
      return .linked(target: target)
    case .file:
      let directory = try writing { () throws(Errno) -> DirectoryHandle in try self.directory(of: entry) }
      // A file whose payload is no longer in the backup is not verified again.
      let isInBackup = entry.isStored || record?.needsPayload == false
      if isInBackup, let content = try unchangedContent(of: listedEntry, in: directory) {
        wasKept = true
        job.journal.addReadBytes(content.byteCount)
        return .written(content)
      }
      return try write(listedEntry, payload, into: directory)
    }
  }

  /// Returns the recorded content of a file from an earlier run, if the file is unchanged.
  private func unchangedContent(
    of listedEntry: ListedEntry, in directory: DirectoryHandle
  ) throws(Failure) -> ExtractedContent? {
    guard let content = job.priorExtraction[listedEntry.file.fileIdentifier] else { return nil }
    let isUnchanged = try writing { () throws(Errno) -> Bool in
      try self.hasContent(content, listedEntry.entry.name, in: directory)
    }
    return isUnchanged ? content : nil
  }

  /// Runs system calls whose error stops the whole extraction.
  func writing<Value>(_ body: () throws(Errno) -> Value) throws(Failure) -> Value {
    do throws(Errno) { return try body() } catch { throw .stop(job.folder.explain(error)) }
  }

  /// Returns the directory of an entry, which may be open already.
  func directory(of entry: ExtractionPlan.Entry) throws(Errno) -> DirectoryHandle {
    if let parent, parent.index == entry.directory { return parent.handle }
    let handle = try job.folder.openDirectory(ExtractionPaths.names(of: entry.directory, in: job.plan.directories))
    parent = (entry.directory, handle)
    return handle
  }
}

extension ExtractionWorker {
  /// Writes a file under a temporary name, then renames it. The journal syncs the file later.
  func write(
    _ listedEntry: ListedEntry, _ payload: StoredPayload?, into directory: DirectoryHandle
  ) throws(Failure) -> ExtractedRecord.Outcome {
    let record = listedEntry.record
    let target = try writing { () throws(Errno) in SharedDescriptor(try makeTemporary()) }
    let (reading, sha256) = try read(listedEntry.file, payload, into: target)
    let byteCount = reading.scan.plainByteCount
    guard reading.scan.hasValidPadding else {
      throw .file(KeyhaulError(.damaged, "its stored form does not end with valid padding"))
    }
    try writing { () throws(Errno) in
      // Every file is readable by its owner. If the list gives a file no permissions, only its owner has access.
      let mode = (record?.mode ?? 0) & 0o777
      try system.setPermissions(mode == 0 ? 0o600 : mode | 0o400, of: target.descriptor)
      if let record { try system.setModificationTime(record.lastModified, of: target.descriptor) }
      guard try system.status(of: target.descriptor.raw).byteCount == byteCount else { throw .ioError }
      try system.startWriteback(target.descriptor)
      try system.rename(
        temporaryName, in: job.folder.staging.descriptor, to: listedEntry.entry.name, in: directory.descriptor)
    }
    // An empty file without a payload has no digest.
    let hasDigest = listedEntry.entry.isStored || record?.needsPayload != false
    return .written(
      ExtractedContent(
        byteCount: byteCount, sha256: sha256, digestStatus: hasDigest ? digestStatus(of: reading) : .none))
  }

  /// Reads a payload into a file.
  ///
  /// - Returns: The result of the read and the SHA-256 digest of the plaintext.
  private func read(
    _ file: ListedFile, _ payload: StoredPayload?, into target: SharedDescriptor
  ) throws(Failure) -> (PayloadReader.Reading, sha256: [UInt8]) {
    var writeError: Errno?
    do throws(KeyhaulError) {
      let source: StoredPayload
      if let payload { source = payload } else { source = try job.archive.payload(of: file) }
      let digest = try translatingErrors(in: "SHA-256") { () throws(DataProtectionError) in try DigestStream(.sha256) }
      let reading = try job.reader.read(source, as: file, with: job.keys) {
        (chunk) throws(KeyhaulError) -> Void in
        beforeStep()
        guard !job.journal.hasStopped else { throw KeyhaulError(.interrupted, "it was stopped") }
        do throws(Errno) {
          try system.writeAll(chunk, to: target.descriptor.raw)
        } catch {
          writeError = error
          throw KeyhaulError(.unwritable, error.reason)
        }
        try translatingErrors(in: "SHA-256") { () throws(DataProtectionError) in try digest.update(chunk) }
        job.journal.addReadBytes(Int64(chunk.count))
      }
      job.journal.addReadBytes(reading.scan.storedByteCount - reading.scan.plainByteCount)
      return (reading, try translatingErrors(in: "SHA-256") { () throws(DataProtectionError) in try digest.finish() })
    } catch {
      if let writeError { throw .stop(job.folder.explain(writeError)) }
      let endsExtraction = error.isResourceShortage || error.code == .interrupted || error.code == .notStreamable
      throw endsExtraction ? .stop(error) : .file(error)
    }
  }

  /// Returns whether the file that was read matches its digests in the list and the seal, as a verification does.
  private func digestStatus(of reading: PayloadReader.Reading) -> ExtractedFiles.DigestStatus {
    switch reading.isUnchanged {
    case true?: .matches
    case false?: .differs
    case nil: .none
    }
  }

  /// Creates a link, or keeps an existing one with the same target.
  func link(_ entry: ExtractionPlan.Entry, to target: String, modified: Int64?) throws(Errno) {
    let (directory, staging) = (try directory(of: entry), job.folder.staging)
    let status = try system.status(of: entry.name.systemName, in: directory.descriptor)
    if status?.kind == .link, try system.linkTarget(of: entry.name, in: directory.descriptor) == target { return }
    try discardTemporary()
    try system.makeLink(to: target, temporaryName, in: staging.descriptor)
    if let modified { try system.setModificationTime(modified, ofLink: temporaryName, in: staging.descriptor) }
    try system.rename(temporaryName, in: staging.descriptor, to: entry.name, in: directory.descriptor)
  }

  /// Returns whether a file exists with the given content.
  func hasContent(_ content: ExtractedContent, _ name: String, in directory: DirectoryHandle) throws(Errno) -> Bool {
    guard let status = try system.status(of: name.systemName, in: directory.descriptor), status.kind == .file,
      status.byteCount == content.byteCount
    else { return false }
    return try sha256(of: try system.openForReading(name, in: directory.descriptor)) == content.sha256
  }

  private func sha256(of file: borrowing OwnedFileDescriptor) throws(Errno) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: FileDescriptorSource.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    let raw = file.raw
    do {
      let digest = try DigestStream(.sha256)
      while !job.journal.hasStopped {
        let count = try system.read(raw, into: buffer)
        if count == 0 { break }
        try digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
      return try digest.finish()
    } catch let error as Errno {
      throw error
    } catch {
      throw .noMemory
    }
  }

  private func makeTemporary() throws(Errno) -> OwnedFileDescriptor {
    do throws(Errno) {
      return try system.createFile(temporaryName, in: job.folder.staging.descriptor)
    } catch {
      // A temporary file remains if its payload could not be read completely.
      guard error == .fileExists else { throw error }
    }
    try discardTemporary()
    return try system.createFile(temporaryName, in: job.folder.staging.descriptor)
  }

  private func discardTemporary() throws(Errno) {
    let staging = job.folder.staging
    guard try system.status(of: temporaryName.systemName, in: staging.descriptor) != nil else { return }
    try system.remove(temporaryName.systemName, in: staging.descriptor, isDirectory: false)
  }
}
