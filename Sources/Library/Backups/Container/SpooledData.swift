package import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

/// A private copy of a metadata file, possibly on disk, so that later reads return the bytes that were checked.
package final class SpooledData: Sendable {
  package let byteCount: Int
  /// The SHA-256 digest of the content, 32 bytes.
  package let sha256: [UInt8]
  private let storage: Storage

  fileprivate enum Storage: Sendable {
    case memory([UInt8])
    case file(UnlinkedTemporaryFile)
  }

  fileprivate init(_ storage: Storage, byteCount: Int, sha256: [UInt8]) {
    self.storage = storage
    self.byteCount = byteCount
    self.sha256 = sha256
  }

  package convenience init(_ bytes: [UInt8]) throws(KeyhaulError) {
    let digest = try translatingErrors(in: "the digest") { () throws(DataProtectionError) in try Digest.sha256(bytes) }
    self.init(.memory(bytes), byteCount: bytes.count, sha256: digest)
  }

  /// Whether the copy is on disk.
  package var isInFile: Bool { if case .file = storage { true } else { false } }

  /// Fills the buffer with the bytes from an offset.
  ///
  /// - Throws: `.truncated` if the buffer extends past the end.
  package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
    guard offset >= 0, buffer.count <= byteCount, offset <= byteCount - buffer.count else {
      throw KeyhaulError(.truncated, "byte \(HumanReadable.grouped(Int64(offset))) is beyond the end of a stored part")
    }
    switch storage {
    case .memory(let bytes):
      bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[offset...][..<(offset + buffer.count)])) }
    case .file(let file): try file.read(at: offset, into: buffer)
    }
  }

  /// Passes the content to a closure in chunks.
  package func forEachChunk(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let chunkByteCount = FileDescriptorSource.chunkByteCount
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(byteCount, chunkByteCount), alignment: 16)
    defer { buffer.deallocate() }
    for start in stride(from: 0, to: byteCount, by: chunkByteCount) {
      let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, byteCount - start)])
      try read(at: start, into: chunk)
      try body(UnsafeRawBufferPointer(chunk))
    }
  }

  /// Returns the SHA-1 digest of the content, 20 bytes.
  package func sha1() throws(KeyhaulError) -> [UInt8] {
    let part = "the digest"
    let digest = try translatingErrors(in: part) { () throws(DataProtectionError) in try DigestStream(.sha1) }
    try forEachChunk { (chunk) throws(KeyhaulError) in
      try translatingErrors(in: part) { () throws(DataProtectionError) in try digest.update(chunk) }
    }
    return try translatingErrors(in: part) { () throws(DataProtectionError) in try digest.finish() }
  }

  /// Returns the content in memory.
  package func bytes() throws(KeyhaulError) -> [UInt8] {
    switch storage {
    case .memory(let bytes): return bytes
    case .file:
      return try [UInt8](count: byteCount) { (buffer) throws(KeyhaulError) in try read(at: 0, into: buffer) }
    }
  }
}

/// Collects the bytes of a metadata file, in memory or in a temporary file.
package struct SpooledDataBuilder: ~Copyable {
  private let storage: ManifestStorage
  private let system: FileSystem
  private let digest: DigestStream
  private var buffered: [UInt8] = []
  private var file: UnlinkedTemporaryFile?
  private(set) var byteCount = 0

  /// Creates a builder.
  ///
  /// - Parameter claimedByteCount: The claimed size, which decides only whether a temporary file is created in advance.
  package init(
    _ storage: ManifestStorage, system: FileSystem, expecting claimedByteCount: Int64 = 0
  ) throws(KeyhaulError) {
    let isLarge = storage == .temporaryFile && claimedByteCount >= ManifestStorage.minimumFileByteCount
    let file = isLarge ? try UnlinkedTemporaryFile(system: system) : nil
    digest = try translatingErrors(in: "the digest") { () throws(DataProtectionError) in try DigestStream(.sha256) }
    self.storage = storage
    self.system = system
    self.file = file
  }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    do throws(DataProtectionError) {
      try digest.update(bytes)
    } catch {
      throw KeyhaulError(error, in: "the digest")
    }
    byteCount += bytes.count
    if let file { return try file.append(bytes) }
    buffered.append(contentsOf: bytes)
    guard storage == .temporaryFile, buffered.count >= ManifestStorage.minimumFileByteCount else { return }
    let newFile = try UnlinkedTemporaryFile(system: system)
    try buffered.withRawBytes { (bytes) throws(KeyhaulError) in try newFile.append(bytes) }
    buffered = []
    file = newFile
  }

  package consuming func finish() throws(KeyhaulError) -> SpooledData {
    let storage: SpooledData.Storage = file.map { .file($0) } ?? .memory(buffered)
    let count = byteCount
    do throws(DataProtectionError) {
      return SpooledData(storage, byteCount: count, sha256: try digest.finish())
    } catch {
      throw KeyhaulError(error, in: "the digest")
    }
  }
}

/// An unlinked temporary file that only its owner can read. The system frees its space when the process ends for any
/// reason.
final class UnlinkedTemporaryFile: Sendable {
  private let system: FileSystem
  private let descriptor: OwnedFileDescriptor

  init(system: FileSystem) throws(KeyhaulError) {
    do throws(Errno) {
      descriptor = try system.createUnlinkedFile(in: FileSystem.temporaryDirectory)
    } catch {
      throw Self.failure(.noTemporarySpace, error)
    }
    self.system = system
  }

  /// Appends bytes.
  func append(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    do throws(Errno) {
      try system.writeAll(bytes, to: descriptor.raw)
    } catch {
      throw Self.failure(error.isDiskFull ? .noTemporarySpace : .unreadable, error)
    }
  }

  /// Fills the buffer with the bytes from an offset.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
    var filledCount = 0
    while filledCount < buffer.count {
      let remaining = UnsafeMutableRawBufferPointer(rebasing: buffer[filledCount...])
      let count: Int
      do throws(Errno) {
        count = try system.read(descriptor.raw, at: Int64(offset + filledCount), into: remaining)
      } catch {
        throw KeyhaulError(.unreadable, "a temporary file: \(error.reason)", errno: error)
      }
      guard count > 0 else { throw KeyhaulError(.unreadable, "the end of a temporary file is missing") }
      filledCount += count
    }
  }

  private static func failure(_ code: KeyhaulError.Code, _ error: Errno) -> KeyhaulError {
    KeyhaulError(
      code, "a temporary file in \(quoted(FileSystem.temporaryDirectory)): \(error.reason)", errno: error)
  }
}

/// The storage of a backup's large list of files and keychain file while the backup is open.
///
/// It contains the bytes of the backup. An encrypted file stays encrypted there, and is decrypted in sections when it
/// is read.
public enum ManifestStorage: Sendable, Hashable {
  /// An unlinked temporary file in the directory `TMPDIR`, or in `/tmp`, which disappears with the process. Files
  /// smaller than 8 MiB are kept in memory.
  case temporaryFile
  /// Memory, for any size up to the limit.
  case memory

  /// The minimum size for a temporary file in bytes.
  package static let minimumFileByteCount = 8 << 20
}
