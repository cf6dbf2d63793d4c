package import Basics
import KeychainCrypto
import SystemPackage

extension SimulatorKeychain {
  /// Replaces a database file with a snapshot, byte for byte.
  ///
  /// The snapshot is written and synced beside the file. The file's log is then merged and removed, because SQLite
  /// would apply the log to the new file. Finally, the new file replaces the old one. If the process is killed at any
  /// moment, the file either has its previous items or is the snapshot.
  ///
  /// - Parameters:
  ///   - path: The path of the database to replace.
  ///   - snapshot: The database to write (`KeychainDatabase.image`).
  ///   - image: The database to replace, as it was read.
  ///   - system: The file system.
  /// - Throws: `.databaseBusy` if another process has the file open or has changed it, `.unchangeable` if the
  ///   snapshot's keys are not a Simulator's, and errors of writing. An error of stage `afterCommit` if the file was
  ///   replaced but may not be on the disk yet.
  package static func replace(
    at path: String, with snapshot: KeychainDatabase, changing image: [UInt8], system: FileSystem = .real
  ) throws(KeyhaulError) {
    try checkKeys(of: snapshot)
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.databaseNotWritable, "it has no file name")
    }
    let database = try KeychainConnection(path: path)
    guard try database.hasContent(of: image) else {
      throw KeyhaulError(.databaseBusy, "another process has changed it since Keyhaul read it")
    }
    var replacement = FileReplacement(destination, system)
    replacement.preservedAccess = .all
    let outcome = try replacement.write(
      explaining: refusalError,
      check: { (_) throws(KeyhaulError) in try database.removeLog() },
      fill: { (file) throws(KeyhaulError) in try write(snapshot.image, to: file, system) })
    database.close()
    if let errno = outcome.nameFailure {
      throw KeyhaulError(.databaseDisk, errno.reason, errno: errno).with(stage: .afterCommit)
    }
  }

  /// Checks that a Simulator wrote the keys of a snapshot.
  private static func checkKeys(of snapshot: KeychainDatabase) throws(KeyhaulError) {
    let keys = snapshot.wrappedMetadataKeys.values.filter { !$0.isEmpty }
    guard keys.allSatisfy({ SimulatorKeyStore(detectedIn: $0) != nil }) else {
      throw KeyhaulError(.unchangeable, "the snapshot's keys are not a Simulator's keys")
    }
  }

  private static func refusalError(_ refusal: FileReplacement.Refusal) -> KeyhaulError {
    switch refusal {
    case .system(let errno): KeyhaulError(.databaseDisk, errno.reason, errno: errno)
    case .occupied: KeyhaulError(.databaseNotWritable, "it is not a regular file")
    }
  }

  /// Writes the bytes to a file, and returns the number of bytes.
  private static func write(
    _ bytes: [UInt8], to file: FileDescriptor, _ system: FileSystem
  ) throws(KeyhaulError) -> Int64 {
    do throws(Errno) {
      try system.writeAll(bytes, to: file)
    } catch {
      throw KeyhaulError(.databaseDisk, error.reason, errno: error)
    }
    return Int64(bytes.count)
  }
}
