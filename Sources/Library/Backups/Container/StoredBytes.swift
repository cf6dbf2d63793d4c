package import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

/// A stored part of a backup that may be too large for memory: a private copy, taken once, so that what was measured is
/// what is read later.
package final class StoredBytes: Sendable {
  package let byteCount: Int
  /// 32 bytes, of the whole.
  package let sha256: [UInt8]
  private let place: Place

  fileprivate enum Place: Sendable {
    case memory([UInt8])
    case file(NamelessFile)
  }

  fileprivate init(_ place: Place, byteCount: Int, sha256: [UInt8]) {
    self.place = place
    self.byteCount = byteCount
    self.sha256 = sha256
  }

  package convenience init(_ bytes: [UInt8]) throws(KeyhaulError) {
    let digest = try explained("the digest") { () throws(DataProtectionError) in try Digest.sha256(bytes) }
    self.init(.memory(bytes), byteCount: bytes.count, sha256: digest)
  }

  /// Whether it is in a file and not in memory.
  package var isInFile: Bool { if case .file = place { true } else { false } }

  /// Fills the whole buffer with the bytes from `offset` on.
  ///
  /// - Throws: `.truncated` where the buffer reaches beyond the end.
  package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
    guard offset >= 0, buffer.count <= byteCount, offset <= byteCount - buffer.count else {
      throw KeyhaulError(.truncated, "byte \(HumanReadable.grouped(Int64(offset))) is beyond the end of a stored part")
    }
    switch place {
    case .memory(let bytes):
      bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[offset...][..<(offset + buffer.count)])) }
    case .file(let file): try file.read(at: offset, into: buffer)
    }
  }

  /// Lends all of it, some hundred kilobytes at a time.
  package func forEachPortion(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(byteCount, 1 << 18), alignment: 16)
    defer { buffer.deallocate() }
    for start in stride(from: 0, to: byteCount, by: 1 << 18) {
      let portion = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, byteCount - start)])
      try read(at: start, into: portion)
      try body(UnsafeRawBufferPointer(portion))
    }
  }

  /// 20 bytes, of the whole.
  package func sha1() throws(KeyhaulError) -> [UInt8] {
    let part = "the digest"
    let digest = try explained(part) { () throws(DataProtectionError) in try DigestStream(.sha1) }
    try forEachPortion { (portion) throws(KeyhaulError) in
      try explained(part) { () throws(DataProtectionError) in try digest.update(portion) }
    }
    return try explained(part) { () throws(DataProtectionError) in try digest.finish() }
  }

  /// All of it, in memory.
  package func bytes() throws(KeyhaulError) -> [UInt8] {
    switch place {
    case .memory(let bytes): return bytes
    case .file:
      return try [UInt8](count: byteCount) { (buffer) throws(KeyhaulError) in try read(at: 0, into: buffer) }
    }
  }
}

/// Takes the bytes of a stored part as they arrive.
package struct StoredBytesCollector: ~Copyable {
  private let storage: ManifestStorage
  private let system: FileSystem
  private let digest: DigestStream
  private var buffered: [UInt8] = []
  private var file: NamelessFile?
  private(set) var byteCount = 0

  /// - Parameter expected: How many bytes are said to come; no memory is taken for more than a portion of them.
  package init(
    _ storage: ManifestStorage, system: FileSystem, expecting expected: Int64 = 0
  ) throws(KeyhaulError) {
    let isLarge = storage == .temporaryFile && expected >= ManifestStorage.minimumFileByteCount
    let file = isLarge ? try NamelessFile(system: system) : nil
    digest = try explained("the digest") { () throws(DataProtectionError) in try DigestStream(.sha256) }
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
    let created = try NamelessFile(system: system)
    try buffered.withRawBytes { (all) throws(KeyhaulError) in try created.append(all) }
    buffered = []
    file = created
  }

  package consuming func finish() throws(KeyhaulError) -> StoredBytes {
    let place: StoredBytes.Place = file.map { .file($0) } ?? .memory(buffered)
    let count = byteCount
    do throws(DataProtectionError) {
      return StoredBytes(place, byteCount: count, sha256: try digest.finish())
    } catch {
      throw KeyhaulError(error, in: "the digest")
    }
  }
}

/// A file for its owner alone whose name was taken away before the first byte came in: the system gives its space back
/// when the process ends, whatever ends it.
final class NamelessFile: Sendable {
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

  /// Writes after what was written before.
  func append(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    do throws(Errno) {
      try system.writeAll(bytes, to: descriptor.raw)
    } catch {
      throw Self.failure(error.isDiskFull ? .noTemporarySpace : .unreadable, error)
    }
  }

  /// Fills the whole buffer with the bytes from `offset` on.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let count: Int
      do throws(Errno) {
        count = try system.read(descriptor.raw, at: Int64(offset + done), into: rest)
      } catch {
        throw KeyhaulError(.unreadable, "a temporary file: \(error.reason)", errno: error)
      }
      guard count > 0 else { throw KeyhaulError(.unreadable, "the end of a temporary file is missing") }
      done += count
    }
  }

  private static func failure(_ code: KeyhaulError.Code, _ error: Errno) -> KeyhaulError {
    KeyhaulError(
      code, "a temporary file in \(quoted(FileSystem.temporaryDirectory)): \(error.reason)", errno: error)
  }
}

/// Where a large list of files and a large keychain file are kept while they are read.
///
/// They stay there as the backup has them: encrypted ones are decrypted a part at a time.
public enum ManifestStorage: Sendable, Hashable {
  /// A file of its own that has no name, so that nothing of it is left however the process ends. It lies in the
  /// directory that `TMPDIR` names, or in `/tmp`. Files below `minimumFileByteCount` are kept in memory all the same.
  case temporaryFile
  /// Memory, of any size up to the limit.
  case memory

  /// Below this many bytes neither is worth a file.
  package static let minimumFileByteCount = 8 << 20
}
