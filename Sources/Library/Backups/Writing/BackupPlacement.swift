package import Basics
import KeychainFormats
package import SystemPackage

/// Puts a backup where it should go: whole, or not at all.
package struct BackupPlacement: Sendable {
  package let system: FileSystem

  package init(system: FileSystem = .real) { self.system = system }

  /// What was written.
  package struct Placed: Sendable, Equatable {
    /// Where the backup now stands; `nil` for a stream.
    package let path: String?
    /// As stored; for a directory the sum of its files.
    package let byteCount: Int64
    /// Whether the disk confirmed that it keeps the backup's name too.
    package let isDurable: Bool
    /// A replaced backup that could not be removed, by its path.
    package let leftover: String?
  }

  package func place(
    _ backup: OutgoingBackup, at destination: ArchiveDestination, replace: Bool
  ) throws(BackupArchiveError) -> Placed {
    switch destination {
    case .directory(let path): return try placeDirectory(backup, at: path, replace: replace)
    case .file(let path, let format): return try placeFile(backup, at: path, format: format, replace: replace)
    case .stream(let descriptor):
      do throws(WriteFailure) {
        let count = try pack(backup, as: .tar, into: FileDescriptor(rawValue: descriptor))
        return Placed(path: nil, byteCount: count, isDurable: false, leftover: nil)
      } catch {
        if case .source(let error) = error { throw error }
        throw BackupArchiveError(.streamBroken, explain(error, path: "the stream", needs: backup.byteCount).reason)
      }
    }
  }

  /// Refuses a destination at which `place` would refuse to put a backup, as far as that shows before anything is written.
  ///
  /// - Parameters:
  ///   - identifier: Of the backup's device.
  ///   - replace: Whether a backup, or a file, that stands there may go.
  package func requirePlace(
    at destination: ArchiveDestination, for identifier: String?, replace: Bool
  ) throws(BackupArchiveError) {
    do throws(WriteFailure) {
      switch destination {
      case .directory(let path):
        try requireDirectory(at: path, calling: BackupDirectory.name(for: identifier), replace: replace)
      case .file(let path, _): try requireFile(at: path, replace: replace)
      case .stream: break
      }
    } catch {
      throw explain(error, path: destination.path ?? "the stream", needs: 0)
    }
  }

  /// Writes a container's bytes; returns how many.
  package func pack(
    _ backup: OutgoingBackup, as format: ContainerFormat, into descriptor: FileDescriptor
  ) throws(WriteFailure) -> Int64 {
    let sink = LibArchiveWriter.Sink(descriptor: descriptor, system: system)
    let writer = try LibArchiveWriter(format, compresses: !backup.isEncrypted, to: sink)
    try backup.send(ContainerSink(writer, directoryName: backup.directoryName))
    try writer.finish()
    return sink.byteCount
  }

  package func explain(_ failure: WriteFailure, path: String, needs byteCount: Int64) -> BackupArchiveError {
    switch failure {
    case .library(let text): BackupArchiveError(.unwritable, "\(quotedPath(path)): \(text)")
    case .occupied(let text): BackupArchiveError(.occupied, text)
    case .source(let error): error
    case .system(let failure): explain(failure, path: path, needs: byteCount)
    }
  }

  package func explain(_ failure: Errno, path: String, needs byteCount: Int64) -> BackupArchiveError {
    switch failure {
    case .noSpace:
      BackupArchiveError(.noSpace, "no space left on \(quotedPath(path)) (needs \(Amounts.grouped(byteCount)) bytes)")
    case .diskQuotaExceeded:
      BackupArchiveError(
        .noSpace, "the quota is used up on \(quotedPath(path)) (needs \(Amounts.grouped(byteCount)) bytes)")
    case .noSuchFileOrDirectory: BackupArchiveError(.notFound, "\(quotedPath(path)): \(failure.reason)")
    default: BackupArchiveError(.unwritable, "\(quotedPath(path)): \(failure.reason)")
    }
  }

  /// A path that the user typed stands as it is, unless that would garble the terminal.
  private func quotedPath(_ path: String) -> String {
    let text = quoted(path)
    return text == "\"\(path)\"" ? path : text
  }
}

extension PlacePath {
  /// Whether a file in a backup's directory is what writing its manifest, or its seal, was ended at.
  package static func isTemporaryPart(_ name: String) -> Bool {
    [StoredPart.manifest, .seal].contains { PlacePath($0.path)?.isTemporarySibling(name) == true }
  }
}
