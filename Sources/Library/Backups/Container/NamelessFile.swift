import Basics
import SystemPackage

/// A file for its owner alone whose name was taken away before the first byte came in: the system gives its space back
/// when the process ends, whatever ends it.
final class NamelessFile: Sendable {
  private let system: FileSystem
  private let descriptor: Descriptor

  init(system: FileSystem) throws(BackupArchiveError) {
    do throws(Errno) {
      descriptor = try system.createNamelessFile(in: FileSystem.temporaryDirectory)
    } catch {
      throw Self.failure(.noTemporarySpace, error)
    }
    self.system = system
  }

  /// Writes after what was written before.
  func append(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError) {
    do throws(Errno) {
      try system.writeAll(bytes, to: descriptor.raw)
    } catch {
      throw Self.failure(error.isDiskFull ? .noTemporarySpace : .unreadable, error)
    }
  }

  /// Fills the whole buffer with the bytes from `offset` on.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(BackupArchiveError) {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let count: Int
      do throws(Errno) {
        count = try system.read(descriptor.raw, at: Int64(offset + done), into: rest)
      } catch {
        throw BackupArchiveError(.unreadable, "a temporary file: \(error.reason)")
      }
      guard count > 0 else { throw BackupArchiveError(.unreadable, "a temporary file has lost its end") }
      done += count
    }
  }

  private static func failure(_ code: BackupArchiveError.Code, _ error: Errno) -> BackupArchiveError {
    BackupArchiveError(code, "a temporary file in \(quoted(FileSystem.temporaryDirectory)): \(error.reason)")
  }
}
