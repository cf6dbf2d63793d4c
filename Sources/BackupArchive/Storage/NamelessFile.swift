#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file for its owner alone whose name was taken away before the first byte came in: the system gives its space back
/// when the process ends, whatever ends it.
final class NamelessFile: Sendable {
  private let system: FileSystem
  private let descriptor: Descriptor

  init(system: FileSystem) throws(BackupArchiveError) {
    do throws(SystemFailure) {
      descriptor = try system.createNamelessFile(in: Self.folder)
    } catch {
      throw Self.failure(error)
    }
    self.system = system
  }

  private static var folder: String {
    guard let name = getenv("TMPDIR").map({ String(cString: $0) }), !name.isEmpty else { return "/tmp" }
    return name
  }

  /// Writes after what was written before.
  func append(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError) {
    do throws(SystemFailure) {
      try system.writeAll(bytes, to: descriptor.raw)
    } catch {
      throw Self.failure(error)
    }
  }

  /// Fills the whole buffer with the bytes from `offset` on.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(BackupArchiveError) {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let count: Int
      do throws(SystemFailure) {
        count = try system.read(descriptor.raw, at: Int64(offset + done), into: rest)
      } catch {
        throw BackupArchiveError(.unreadable, "a temporary file: \(error.text)")
      }
      guard count > 0 else { throw BackupArchiveError(.unreadable, "a temporary file has lost its end") }
      done += count
    }
  }

  private static func failure(_ error: SystemFailure) -> BackupArchiveError {
    let isFull = error.number == ENOSPC || error.number == EDQUOT
    return BackupArchiveError(
      isFull ? .noTemporarySpace : .unreadable, "a temporary file in \(quoted(folder)): \(error.text)")
  }
}
