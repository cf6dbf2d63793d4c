/// What was written out of a backup into a folder, and what was not.
package struct ExtractedFiles: Sendable {
  /// How a file's digests, in the list and in the seal, stand to what was read. The raw value is the word of the manifest.
  package enum DigestStanding: String, Sendable, CaseIterable {
    /// That of the list is that of the stored bytes, or of the plain ones; that of the seal is that of the stored ones.
    case right
    /// One of them is not: the file is not what was backed up.
    case differs
    /// There is none: a change in the file cannot be seen.
    case none
  }

  /// Why something that could be read was not written. The raw value is the word of the manifest.
  package enum LeftOut: String, Sendable, CaseIterable {
    /// A link whose target may lie outside of the folder.
    case leadsOut = "leads-out"
    /// Neither a file nor a directory nor a link: what the device had not finished.
    case unfinished
  }

  /// What has another name than in the backup.
  package struct Renamed: Sendable, Equatable {
    package let from: String
    package let to: String
  }

  /// What could not be read, and so was not written.
  package struct Fault: Sendable, Equatable {
    /// Domain and path.
    package let path: String
    package let error: BackupArchiveError
  }

  /// How many of what is named one by one; the manifest has all.
  package static let maximumNamedCount = 100

  /// What a table of the manifest is called beside it.
  package static let tableName = ExtractionFolder.tableName

  /// Files of this run and of an earlier one.
  package internal(set) var fileCount = 0
  /// Of these, the files that an earlier run had written and that were right.
  package internal(set) var keptCount = 0
  package internal(set) var linkCount = 0
  package internal(set) var directoryCount = 0
  /// Plain bytes of all files.
  package internal(set) var byteCount: Int64 = 0
  package internal(set) var digests: [DigestStanding: Int] = [:]
  package internal(set) var leftOut: [LeftOut: Int] = [:]
  package internal(set) var renamedCount = 0
  package internal(set) var renamed: [Renamed] = []
  package internal(set) var faults: [BackupArchiveError.Code: Int] = [:]
  package internal(set) var namedFaults: [Fault] = []
  /// Files whose digest differs, the first of them by domain and path.
  package internal(set) var differing: [String] = []
  /// Where the manifest is.
  package internal(set) var manifestPath = ""

  package var faultCount: Int { faults.values.reduce(0, +) }

  /// Whether all that was chosen is there as it was backed up, as far as digests tell.
  package var isComplete: Bool { faults.isEmpty && digests[.differs, default: 0] == 0 }

  mutating func add(_ record: ExtractedRecord, wasKept: Bool) {
    switch record.outcome {
    case .written(let content):
      fileCount += 1
      if wasKept { keptCount += 1 }
      byteCount += content.byteCount
      digests[content.standing, default: 0] += 1
      if content.standing == .differs, differing.count < Self.maximumNamedCount {
        differing.append(record.originalPath)
      }
    case .linked: linkCount += 1
    case .leftOut(let reason): leftOut[reason, default: 0] += 1
    case .failed(let error):
      faults[error.code, default: 0] += 1
      if namedFaults.count < Self.maximumNamedCount {
        namedFaults.append(Fault(path: record.originalPath, error: error))
      }
    }
    guard record.isRenamed, let path = record.path else { return }
    renamedCount += 1
    if renamed.count < Self.maximumNamedCount { renamed.append(Renamed(from: record.originalPath, to: path)) }
  }
}
