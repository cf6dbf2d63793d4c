package import Basics
import KeychainFormats
import SystemPackage

/// The result of an extraction.
package struct ExtractedFiles: Sendable {
  /// The result of comparing a file with its digests in the list and the seal. The extraction's own manifest contains
  /// the raw value.
  package enum DigestStatus: String, Sendable, CaseIterable {
    /// Every digest matches. The list records the digest of the stored bytes or of the plaintext, and the seal records
    /// the digest of the stored bytes.
    case matches = "right"
    /// A digest differs, so the file is not the one that was backed up.
    case differs
    /// Neither the list nor the seal has a digest, so changes cannot be detected.
    case none
  }

  /// The reason why a readable entry was not written. The extraction's own manifest contains the raw value.
  package enum Omission: String, Sendable, CaseIterable {
    /// A link whose target may be outside the folder.
    case targetOutsideFolder = "leads-out"
    /// An entry that is neither a file, a directory nor a link, because the device did not finish writing it.
    case unfinished
  }

  /// An entry with a different name than in the backup.
  package struct Renamed: Sendable, Equatable {
    package let from: String
    package let to: String
  }

  /// An entry that could not be read.
  package struct Fault: Sendable, Equatable {
    /// The domain and the path.
    package let path: String
    package let error: KeyhaulError
  }

  /// The maximum number of entries in `renamed`, `namedFaults` and `differingFiles`. The manifest contains all.
  package static let maximumListedCount = 100

  /// The file name of the manifest as a table.
  package static let tableName = ExtractionFolder.tableName

  /// The number of files from this run and earlier runs.
  package internal(set) var fileCount = 0
  /// The number of valid files from earlier runs.
  package internal(set) var keptCount = 0
  package internal(set) var linkCount = 0
  package internal(set) var directoryCount = 0
  /// The total plaintext size.
  package internal(set) var byteCount: Int64 = 0
  /// The number of files with each status.
  package internal(set) var digests: [DigestStatus: Int] = [:]
  /// The number of entries that were not written for each reason.
  package internal(set) var omissions: [Omission: Int] = [:]
  package internal(set) var renamedCount = 0
  package internal(set) var renamed: [Renamed] = []
  /// The number of unreadable entries with each error code.
  package internal(set) var faults: [KeyhaulError.Code: Int] = [:]
  package internal(set) var namedFaults: [Fault] = []
  /// The first files with different digests, by domain and path.
  package internal(set) var differingFiles: [String] = []
  /// The path of the manifest.
  package internal(set) var manifestPath = ""

  package var faultCount: Int { faults.values.reduce(0, +) }

  /// Whether every selected entry could be read, and no digest differs. Entries that were left out do not count.
  package var isComplete: Bool { faults.isEmpty && digests[.differs, default: 0] == 0 }

  mutating func add(_ record: ExtractedRecord, wasKept: Bool) {
    switch record.outcome {
    case .written(let content):
      fileCount += 1
      if wasKept { keptCount += 1 }
      byteCount += content.byteCount
      digests[content.digestStatus, default: 0] += 1
      if content.digestStatus == .differs, differingFiles.count < Self.maximumListedCount {
        differingFiles.append(record.originalPath)
      }
    case .linked: linkCount += 1
    case .omitted(let reason): omissions[reason, default: 0] += 1
    case .failed(let error):
      faults[error.code, default: 0] += 1
      if namedFaults.count < Self.maximumListedCount {
        namedFaults.append(Fault(path: record.originalPath, error: error))
      }
    }
    guard record.isRenamed, let path = record.path else { return }
    renamedCount += 1
    if renamed.count < Self.maximumListedCount { renamed.append(Renamed(from: record.originalPath, to: path)) }
  }
}

/// The extraction's own manifest as a CSV table (RFC 4180).
package enum ExtractedFilesTable {
  /// The file name of the table.
  package static let name = ExtractedFiles.tableName

  private static let columns = [
    "path", "size", "sha256", "protection_class", "domain", "modified", "relative_path", "kind", "mode", "digest",
    "left_out", "fault", "reason",
  ]

  /// The size at which a chunk is passed on.
  private static let chunkByteCount = 64 << 10

  /// Passes the table of a finished manifest to a closure in chunks.
  package static func forEachChunk(
    ofManifest path: String, _ body: ([UInt8]) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var lines = CSV.line(columns)
    try ExtractedFiles.forEachLine(ofManifest: path) { (line) throws(KeyhaulError) in
      lines += CSV.line(columns.map { text(line[$0]) })
      guard lines.utf8.count > chunkByteCount else { return }
      try body(Array(lines.utf8))
      lines = ""
    }
    try body(Array(lines.utf8))
  }

  private static func text(_ value: JSONValue?) -> String {
    value?.stringValue ?? value?.integerValue.map { String($0) } ?? ""
  }
}

/// Finishes the directories of a tree: sets their times and permissions, and syncs them. This happens after their content
/// is written, because a new entry changes the time of its directory.
struct ExtractedDirectories {
  private let job: ExtractionJob

  init(_ job: ExtractionJob) { self.job = job }

  /// Finishes the directories, each before the directory that contains it.
  func finish() throws(KeyhaulError) {
    let reader = try job.list.reader()
    for index in job.plan.directories.indices.dropFirst().reversed() {
      let directory = job.plan.directories[index]
      let file = try directory.location.flatMap { (location) throws(KeyhaulError) in try reader.file(at: location) }
      // A directory with an unreadable record still contains files.
      let record = (try? file?.record()).flatMap(\.self)
      do throws(Errno) {
        try finish(index, record)
      } catch {
        throw job.folder.explain(error)
      }
    }
    do throws(Errno) {
      try job.folder.system.syncFileSystem(of: job.folder.root.descriptor)
    } catch {
      throw job.folder.explain(error)
    }
  }

  private func finish(_ index: Int, _ record: FileRecord?) throws(Errno) {
    let (folder, system) = (job.folder, job.folder.system)
    let handle = try folder.openDirectory(ExtractionPaths.names(of: index, in: job.plan.directories))
    if let record {
      // Only the owner can access a domain's directory. This protects the files in it, even if their own permissions
      // let everyone read them.
      let isDomain = job.plan.directories[index].parent == 0
      try system.setPermissions(isDomain ? 0o700 : record.mode & 0o777 | 0o700, of: handle.descriptor)
      try system.setModificationTime(record.lastModified, of: handle.descriptor)
    }
    try system.startWriteback(handle.descriptor)
  }
}
