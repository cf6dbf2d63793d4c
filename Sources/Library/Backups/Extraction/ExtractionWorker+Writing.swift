import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

extension ExtractionWorker {
  /// Writes a file beside its place, and gives it its name when all of it is written; the journal has the disk keep it.
  func write(
    _ entry: ExtractionPlan.Entry, _ file: ListedFile, _ record: FileRecord?, _ payload: StoredPayload?,
    into directory: DirectoryHandle
  ) throws(Failure) -> ExtractedRecord.Outcome {
    let staging = job.folder.staging
    let target = try writing { () throws(Errno) in DirectoryHandle(try makeTemporary()) }
    let (reading, sha256) = try read(file, payload, into: target)
    guard reading.payload.hasValidPadding else {
      throw .file(BackupArchiveError(.damaged, "its stored form does not end with valid padding"))
    }
    try writing { () throws(Errno) in
      // Read by its owner alone where the list has no permissions, and by its owner at least where it has.
      let mode = (record?.mode ?? 0) & 0o777
      try system.setPermissions(mode == 0 ? 0o600 : mode | 0o400, of: target.descriptor)
      if let record { try system.setModificationTime(record.lastModified, of: target.descriptor) }
      guard try system.status(of: target.descriptor.raw).byteCount == reading.payload.plainByteCount else {
        throw .ioError
      }
      try system.handToDisk(target.descriptor)
    }
    // Of an empty file that is not stored there is nothing that a digest could be of.
    let standing = entry.isStored || record?.needsPayload != false ? standing(of: reading) : .none
    try writing { () throws(Errno) in
      try system.rename(temporaryName, in: staging.descriptor, to: entry.name, in: directory.descriptor)
    }
    return .written(
      ExtractedContent(byteCount: reading.payload.plainByteCount, sha256: sha256, standing: standing))
  }

  /// Reads a payload to its end into a file.
  ///
  /// - Returns: What came of it, and SHA-256 of the plain bytes.
  private func read(
    _ file: ListedFile, _ payload: StoredPayload?, into target: DirectoryHandle
  ) throws(Failure) -> (PayloadReader.Reading, sha256: [UInt8]) {
    var refusal: Errno?
    do throws(BackupArchiveError) {
      let source: StoredPayload
      if let payload { source = payload } else { source = try job.archive.payload(of: file) }
      let digest = try explained("SHA-256") { () throws(DataProtectionError) in try DigestStream(.sha256) }
      let reading = try job.reader.read(source, as: file, with: job.keys.keys) {
        (portion) throws(BackupArchiveError) -> Void in
        guard !job.journal.hasStopped else { throw BackupArchiveError(.interrupted, "it was stopped") }
        do throws(Errno) {
          try system.writeAll(portion, to: target.descriptor.raw)
        } catch {
          refusal = error
          throw BackupArchiveError(.unwritable, error.reason)
        }
        try explained("SHA-256") { () throws(DataProtectionError) in try digest.update(portion) }
        job.journal.add(Int64(portion.count))
      }
      job.journal.add(reading.payload.storedByteCount - reading.payload.plainByteCount)
      return (reading, try explained("SHA-256") { () throws(DataProtectionError) in try digest.finish() })
    } catch {
      if let refusal { throw .stop(job.folder.explain(refusal)) }
      throw error.code == .interrupted || error.code == .notStreamable ? .stop(error) : .file(error)
    }
  }

  /// What the digests of the list and of the seal say of what was read, as in a verification.
  private func standing(of reading: PayloadReader.Reading) -> ExtractedFiles.DigestStanding {
    switch reading.isRight {
    case true?: .right
    case false?: .differs
    case nil: .none
    }
  }

  /// Makes a link, or leaves the one that is there and leads to the same.
  func link(_ entry: ExtractionPlan.Entry, to target: String, modified: Int64?) throws(Errno) {
    let (directory, staging) = (try directory(of: entry), job.folder.staging)
    let standing = try system.status(of: entry.name.systemName, in: directory.descriptor)
    if standing?.kind == .link, try system.linkTarget(of: entry.name, in: directory.descriptor) == target { return }
    try discardTemporary()
    try system.makeLink(to: target, temporaryName, in: staging.descriptor)
    if let modified { try system.setModificationTime(modified, ofLink: temporaryName, in: staging.descriptor) }
    try system.rename(temporaryName, in: staging.descriptor, to: entry.name, in: directory.descriptor)
  }

  /// Whether a file is there with this content.
  func holds(_ known: ExtractedContent, _ name: String, in directory: DirectoryHandle) throws(Errno) -> Bool {
    guard let status = try system.status(of: name.systemName, in: directory.descriptor), status.kind == .file,
      status.byteCount == known.byteCount
    else { return false }
    return try sha256(of: try system.openForReading(name, in: directory.descriptor)) == known.sha256
  }

  private func sha256(of file: borrowing Descriptor) throws(Errno) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
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

  private func makeTemporary() throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try system.createFile(temporaryName, in: job.folder.staging.descriptor)
    } catch {
      // Left of a file that could not be read to its end.
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
