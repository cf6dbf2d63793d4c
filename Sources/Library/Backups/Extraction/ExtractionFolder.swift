import Basics
import KeychainFormats
import SystemPackage

/// The folder that files are written into: ours alone, or not touched.
///
/// While a run is under way it holds `.keyhaul-part`: the file that is being written, and what is known of those that are
/// done. The manifest gets its name when everything else has.
final class ExtractionFolder: Sendable {
  /// The manifest: a line of JSON for each file, after one that says of what backup they are.
  package static let manifestName = "keyhaul-files.jsonl"
  static let tableName = "keyhaul-files.csv"
  static let stagingName = ".keyhaul-part"
  static let ownNames = [manifestName, tableName, stagingName]
  /// In the staging directory: what earlier runs have written.
  static let knownName = "known.jsonl"
  /// In the staging directory: the manifest as it grows.
  static let journalName = "files.jsonl"
  static let format = "exported-files/1"

  /// What stands at the path of a folder.
  package enum Standing: Sendable {
    case nothing, empty
    /// Begun or finished by an earlier run of the same.
    case ours
  }

  let root: DirectoryHandle
  let staging: DirectoryHandle
  let system: FileSystem
  private let path: String
  /// Keeps other runs out; `nil` on a file system that knows no locks.
  private let hold: FileLock?

  /// Looks without changing anything.
  ///
  /// - Parameter header: The first line of the manifest.
  /// - Throws: `.occupied` for what is not ours, and for the files of another backup or of another choice.
  static func standing(
    at path: String, header: JSONValue, system: FileSystem
  ) throws(KeyhaulError) -> Standing {
    do throws(Errno) {
      guard let status = try system.status(of: path, followsLink: true) else { return .nothing }
      guard status.kind == .directory else { throw .fileExists }
      let directory = try system.openDirectory(path)
      let names = try system.names(in: directory)
      if names.isEmpty { return .empty }
      let lines = try headers(in: directory, system)
      guard let first = lines.first else {
        // A run that was ended before it had written a line.
        if names.allSatisfy({ $0.text == stagingName }) { return .empty }
        throw .directoryNotEmpty
      }
      guard first == header else { throw .fileExists }
      return .ours
    } catch {
      throw failure(error, path)
    }
  }

  private static func failure(_ error: Errno, _ path: String) -> KeyhaulError {
    switch error {
    case .directoryNotEmpty: KeyhaulError(.occupied, "\(UntrustedText.quoted(path)) contains other files")
    case .fileExists:
      KeyhaulError(
        .occupied,
        "\(UntrustedText.quoted(path)) contains files from a run with other flags, from another backup, or "
          + "from before this backup changed")
    case .wouldBlock: KeyhaulError(.occupied, "another run is writing into \(UntrustedText.quoted(path))")
    default: BackupPlacement(system: .real).explain(error, path: path, needs: nil)
    }
  }

  /// The first lines of what a run leaves, as far as there are any.
  private static func headers(
    in directory: borrowing OwnedFileDescriptor, _ system: FileSystem
  ) throws(Errno) -> [JSONValue] {
    var found: [JSONValue] = []
    if let header = try header(of: manifestName, in: directory, system) { found.append(header) }
    guard try system.status(of: stagingName.systemName, in: directory)?.kind == .directory else { return found }
    let staging = try system.openDirectory(stagingName.systemName, in: directory)
    for name in [knownName, journalName] {
      if let header = try header(of: name, in: staging, system) { found.append(header) }
    }
    return found
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

  /// Opens the folder for writing, made where it is not there, with the folders above it that are missing.
  ///
  /// - Throws: As `standing`, and where another run holds it.
  init(at path: String, header: JSONValue, system: FileSystem) throws(KeyhaulError) {
    let standing = try Self.standing(at: path, header: header, system: system)
    do throws(Errno) {
      if standing == .nothing { try system.makeDirectories(path) }
      let directory = try system.openDirectory(path)
      let inner = try system.openOrMakeDirectory(Self.stagingName, in: directory)
      hold = try Self.hold(inner, system)
      for name in try system.names(in: inner) where ![Self.knownName, Self.journalName].contains(name.text) {
        try system.removeTree(name, in: inner)
      }
      staging = DirectoryHandle(inner)
      root = DirectoryHandle(directory)
    } catch {
      throw Self.failure(error, path)
    }
    self.path = path
    self.system = system
  }

  private static func hold(_ directory: borrowing OwnedFileDescriptor, _ system: FileSystem) throws(Errno) -> FileLock?
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

  /// Lets other runs in. Worker threads that are done may still hold a reference to this folder.
  func release() {
    switch hold {
    case .some(let lock): lock.release()
    case nil: break
    }
  }

  func explain(_ error: Errno) -> KeyhaulError { Self.failure(error, path) }

  /// Opens a directory of the tree; no link is followed on the way.
  func openDirectory(_ names: [String]) throws(Errno) -> DirectoryHandle {
    guard let first = names.first else { return root }
    var handle = DirectoryHandle(try system.openDirectory(first.systemName, in: root.descriptor))
    for name in names.dropFirst() {
      handle = DirectoryHandle(try system.openDirectory(name.systemName, in: handle.descriptor))
    }
    return handle
  }

  /// Gives the finished manifest its name and removes what a run under way needs.
  func finish() throws(Errno) {
    try system.rename(Self.journalName, in: staging.descriptor, to: Self.manifestName, in: root.descriptor)
    try system.syncDirectory(root.descriptor)
    try system.removeTree(Self.stagingName.systemName, in: root.descriptor)
  }
}
