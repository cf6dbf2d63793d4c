import Basics
import SystemPackage

/// A file in a staging folder.
struct StagedFile {
  let name: String
  let path: String
  let byteCount: Int64

  /// Reads the file in chunks.
  ///
  /// - Throws: `.failed` if the file cannot be read, and the errors of `body`.
  func forEachChunk(
    ofAtMost chunkByteCount: Int, _ body: ([UInt8]) throws(BackupServiceError) -> Void
  ) throws(BackupServiceError) {
    let file = try converting(Self.readError) { () throws(Errno) in try FileSystem.real.openOwnFile(path) }
    var offset: Int64 = 0
    while offset < byteCount {
      let remaining = byteCount - offset
      let chunk = try Self.read(file, at: offset, atMost: Int(min(Int64(chunkByteCount), remaining)))
      guard !chunk.isEmpty else { throw .failed(.cannotRead, "a file became shorter while it was being read") }
      offset += Int64(chunk.count)
      try body(chunk)
    }
  }

  private static func read(
    _ file: borrowing OwnedFileDescriptor, at offset: Int64, atMost byteCount: Int
  ) throws(BackupServiceError) -> [UInt8] {
    let raw = file.raw
    var failure: Errno?
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initializedCount in
      do throws(Errno) {
        initializedCount = try FileSystem.real.read(raw, at: offset, into: UnsafeMutableRawBufferPointer(buffer))
      } catch {
        failure = error
      }
    }
    if let failure { throw readError(failure) }
    return bytes
  }

  private static func readError(_ errno: Errno) -> BackupServiceError {
    .failed(.cannotRead, "the device's folder: \(errno.reason)")
  }

  /// Returns the bytes of a small file.
  func bytes() throws(BackupServiceError) -> [UInt8] {
    var bytes: [UInt8] = []
    let mebibyte = 1 << 20
    try forEachChunk(ofAtMost: mebibyte) { bytes += $0 }
    return bytes
  }
}
