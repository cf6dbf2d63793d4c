import Basics
import KeychainFormats
import SystemPackage

/// The directories of a tree once everything is in them: they get the times and permissions that the list has, and the
/// disk keeps both.
struct ExtractedDirectories {
  private let job: ExtractionJob

  init(_ job: ExtractionJob) { self.job = job }

  /// Children come first: what is changed in a directory changes its time.
  func finish() throws(BackupArchiveError) {
    let reader = try job.list.reader()
    for number in job.plan.directories.indices.dropFirst().reversed() {
      let directory = job.plan.directories[number]
      let file = try directory.place.flatMap { (place) throws(BackupArchiveError) in try reader.file(at: place) }
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
    try system.handToDisk(handle.descriptor)
  }
}
