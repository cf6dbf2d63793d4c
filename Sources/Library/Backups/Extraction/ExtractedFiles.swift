package import Basics
import KeychainFormats
import SystemPackage

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
    package let error: KeyhaulError
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
  package internal(set) var faults: [KeyhaulError.Code: Int] = [:]
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

/// The manifest of files that were written, as a table (RFC 4180).
package enum ExtractedFilesTable {
  /// What it is called beside the manifest.
  package static let name = ExtractedFiles.tableName

  private static let columns = [
    "path", "size", "sha256", "protection_class", "domain", "modified", "relative_path", "kind", "mode", "digest",
    "left_out", "fault", "reason",
  ]

  /// Lends the table in portions, made of a finished manifest.
  package static func forEachPortion(
    ofManifest path: String, _ body: ([UInt8]) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var lines = CSV.line(columns)
    try ExtractedFiles.forEachLine(ofManifest: path) { (line) throws(KeyhaulError) in
      lines += CSV.line(columns.map { text(line[$0]) })
      guard lines.utf8.count > 64 << 10 else { return }
      try body(Array(lines.utf8))
      lines = ""
    }
    try body(Array(lines.utf8))
  }

  private static func text(_ value: JSONValue?) -> String {
    value?.stringValue ?? value?.integerValue.map { String($0) } ?? ""
  }
}

/// The directories of a tree once everything is in them: they get the times and permissions that the list has, and the
/// disk keeps both.
struct ExtractedDirectories {
  private let job: ExtractionJob

  init(_ job: ExtractionJob) { self.job = job }

  /// Children come first: what is changed in a directory changes its time.
  func finish() throws(KeyhaulError) {
    let reader = try job.list.reader()
    for number in job.plan.directories.indices.dropFirst().reversed() {
      let directory = job.plan.directories[number]
      let file = try directory.place.flatMap { (place) throws(KeyhaulError) in try reader.file(at: place) }
      // A directory whose record cannot be read has files all the same.
      let record = (try? file?.record()).flatMap(\.self)
      do throws(Errno) {
        try finish(number, record)
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

  private func finish(_ number: Int, _ record: FileRecord?) throws(Errno) {
    let (folder, system) = (job.folder, job.folder.system)
    let handle = try folder.openDirectory(TreeNames.names(of: number, in: job.plan.directories))
    if let record {
      // A domain's own directory stays its owner's alone, and so does what is below it, whatever permissions that has.
      let isDomain = job.plan.directories[number].parent == 0
      try system.setPermissions(isDomain ? 0o700 : record.mode & 0o777 | 0o700, of: handle.descriptor)
      try system.setModificationTime(record.lastModified, of: handle.descriptor)
    }
    try system.startWriteback(handle.descriptor)
  }
}
