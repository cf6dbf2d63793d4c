import Basics
import KeychainFormats
import SystemPackage

/// The target folder of an extraction. It must be new, empty, or the target of an earlier run.
///
/// During a run, it contains the directory `.keyhaul-part` with the files that are being written and a journal of the
/// finished files. The manifest gets its final name last.
final class ExtractionFolder: Sendable {
  /// The name of the extraction's own manifest. Its first line is a JSON header for the backup, and each other line is
  /// the JSON of an entry.
  package static let manifestName = "keyhaul-files.jsonl"
  static let tableName = "keyhaul-files.csv"
  static let stagingName = ".keyhaul-part"
  static let ownNames = [manifestName, tableName, stagingName]
  /// The name of the journal of earlier runs, in the staging directory.
  static let priorJournalName = "known.jsonl"
  /// The name of the incomplete manifest, in the staging directory.
  static let journalName = "files.jsonl"
  static let format = "exported-files/1"

  /// The state of a folder's path.
  package enum FolderState: Sendable {
    /// Nothing exists at the path.
    case nothing
    /// An empty folder, or a folder of an earlier run that wrote no line.
    case empty
    /// A folder of an earlier run with the same backup and selection.
    case resumable
  }

  let root: DirectoryHandle
  let staging: DirectoryHandle
  let system: FileSystem
  private let path: String
  /// The file lock against other runs, or `nil` if the file system does not support file locks.
  private let lock: FileLock?

  /// Returns the state of a path without changing anything.
  ///
  /// - Parameter header: The first line of the manifest.
  /// - Throws: `.occupied` if the folder contains other files, or files of a different backup or selection.
  static func state(
    at path: String, header: JSONValue, system: FileSystem
  ) throws(KeyhaulError) -> FolderState {
    do throws(Errno) {
      guard let status = try system.status(of: path, followsLink: true) else { return .nothing }
      guard status.kind == .directory else { throw .fileExists }
      let directory = try system.openDirectory(path)
      let names = try system.names(in: directory)
      if names.isEmpty { return .empty }
      let storedHeaders = try headers(in: directory, system)
      guard let firstHeader = storedHeaders.first else {
        // An earlier run ended before it wrote a line.
        if names.allSatisfy({ $0.text == stagingName }) { return .empty }
        throw .directoryNotEmpty
      }
      guard firstHeader == header else { throw .fileExists }
      return .resumable
    } catch {
      throw failure(error, path)
    }
  }

  /// Returns the error for a folder. The functions of this type throw `directoryNotEmpty`, `fileExists` and
  /// `wouldBlock` for folders that cannot be used.
  private static func failure(_ error: Errno, _ path: String) -> KeyhaulError {
    switch error {
    case .directoryNotEmpty: KeyhaulError(.occupied, "\(UntrustedText.quoted(path)) contains other files")
    case .fileExists:
      KeyhaulError(
        .occupied,
        "\(UntrustedText.quoted(path)) contains files from a run with other flags, from another backup, or "
          + "from before this backup changed")
    case .wouldBlock: KeyhaulError(.occupied, "another run is writing into \(UntrustedText.quoted(path))")
    default: BackupInstaller(system: .real).explain(error, path: path, needs: nil)
    }
  }

  /// Returns the first lines of the manifest and the journals, if they exist.
  private static func headers(
    in directory: borrowing OwnedFileDescriptor, _ system: FileSystem
  ) throws(Errno) -> [JSONValue] {
    var headers: [JSONValue] = []
    if let header = try header(of: manifestName, in: directory, system) { headers.append(header) }
    guard try system.status(of: stagingName.systemName, in: directory)?.kind == .directory else { return headers }
    let staging = try system.openDirectory(stagingName.systemName, in: directory)
    for name in [priorJournalName, journalName] {
      if let header = try header(of: name, in: staging, system) { headers.append(header) }
    }
    return headers
  }

  private static func header(
    of name: String, in directory: borrowing OwnedFileDescriptor, _ system: FileSystem
  ) throws(Errno) -> JSONValue? {
    guard try system.status(of: name.systemName, in: directory)?.kind == .file else { return nil }
    let file = try system.openForReading(name, in: directory)
    var header: JSONValue?
    try JSONLines.forEach(in: file, system) { line in
      header = line
      return false
    }
    return header?["format"]?.stringValue == format ? header : nil
  }

  /// Opens the folder for writing, and creates it and its parent folders if necessary.
  ///
  /// - Throws: The errors of `state(at:header:system:)`, or an error if another run uses the folder.
  init(at path: String, header: JSONValue, system: FileSystem) throws(KeyhaulError) {
    let state = try Self.state(at: path, header: header, system: system)
    do throws(Errno) {
      if state == .nothing { try system.makeDirectories(path) }
      let directory = try system.openDirectory(path)
      let stagingDirectory = try system.openOrMakeDirectory(Self.stagingName, in: directory)
      lock = try Self.lock(stagingDirectory, system)
      for name in try system.names(in: stagingDirectory)
      where ![Self.priorJournalName, Self.journalName].contains(name.text) {
        try system.removeTree(name, in: stagingDirectory)
      }
      staging = DirectoryHandle(stagingDirectory)
      root = DirectoryHandle(directory)
    } catch {
      throw Self.failure(error, path)
    }
    self.path = path
    self.system = system
  }

  private static func lock(_ directory: borrowing OwnedFileDescriptor, _ system: FileSystem) throws(Errno) -> FileLock?
  {
    let file = try system.openDirectory(".".systemName, in: directory)
    do throws(Errno) {
      guard let lock = try system.lock(file, .exclusive) else { throw .wouldBlock }
      return lock
    } catch {
      if error == .wouldBlock { throw error }
      return nil
    }
  }

  /// Releases the file lock, although finished worker threads may still hold a reference to the folder.
  func release() {
    switch lock {
    case .some(let lock): lock.release()
    case nil: break
    }
  }

  /// Adds the path to a system error.
  func explain(_ error: Errno) -> KeyhaulError { Self.failure(error, path) }

  /// Opens a directory of the tree without following links.
  func openDirectory(_ names: [String]) throws(Errno) -> DirectoryHandle {
    guard let first = names.first else { return root }
    var handle = DirectoryHandle(try system.openDirectory(first.systemName, in: root.descriptor))
    for name in names.dropFirst() {
      handle = DirectoryHandle(try system.openDirectory(name.systemName, in: handle.descriptor))
    }
    return handle
  }

  /// Renames the finished manifest and removes the staging directory.
  func finish() throws(Errno) {
    try system.rename(Self.journalName, in: staging.descriptor, to: Self.manifestName, in: root.descriptor)
    try system.syncDirectory(root.descriptor)
    try system.removeTree(Self.stagingName.systemName, in: root.descriptor)
  }
}
