package import Basics
import CArchive
import KeychainFormats
import SystemPackage

/// Iterates over the files of a container in their order.
package final class ContainerReader {
  package struct File {
    /// The full name of the entry.
    package let name: EntryName
    package let path: EntryPath
    package let byteCount: Int64
    /// The modification time in seconds since 1970.
    package let modificationTime: Int64
  }

  /// Whether a file was cut off, so that the following files can only be found by starting again.
  package var isBroken: Bool { reader.isBroken }
  private let reader: LibArchiveReader
  private let limits: BackupLimits
  /// The remaining number of decompressed bytes of a zip, whose entries can overlap. For a tar, the decompressing
  /// source limits this number.
  private var remainingByteCount: Int64 = .max
  private var scanner: ContainerScanner

  /// Creates a reader.
  ///
  /// - Parameter source: The source, at its start.
  package init(_ source: FileDescriptorSource, as format: ContainerFormat, limits: BackupLimits) throws(KeyhaulError) {
    if format == .zip {
      remainingByteCount = limits.decompressedByteCount(of: source.fileByteCount ?? 0)
      reader = try LibArchiveReader(try ZipNameRewriter(source, limits: limits), reading: .zip)
    } else if format.isCompressedTar {
      reader = try LibArchiveReader(try DecompressingSource(source, as: format, limits: limits), reading: .tar)
    } else {
      reader = try LibArchiveReader(source, reading: .tar)
    }
    self.limits = limits
    scanner = ContainerScanner(limits: limits, containerByteCount: source.fileByteCount)
  }

  /// Returns the next regular file, or `nil` at the end. Unread bytes of the previous file are skipped.
  package func next() throws(KeyhaulError) -> File? {
    guard remainingByteCount >= 0 else { throw limits.expansionError }
    while try reader.nextHeader() {
      guard let entry = reader.entry else { continue }
      guard let name = entry.name else {
        throw KeyhaulError(.hostile, "entry \(scanner.entryCount + 1) has a name that cannot be read")
      }
      _ = try scanner.accept(name: name, kind: entry.kind, byteCount: entry.byteCount)
      guard entry.kind == .file else { continue }
      do throws(EntryPathFault) {
        let path = try EntryPath(name, limit: .max)
        return File(
          name: name, path: path, byteCount: entry.byteCount, modificationTime: reader.modificationTime)
      } catch {
        throw scanner.rejection(name, error.text)
      }
    }
    return nil
  }

  /// Passes the content of the current file to a closure in chunks.
  ///
  /// - Throws: `.damaged` or `.truncated` if the entry claims a different size, `.overLimit`, or the errors of `body`.
  package func forEachChunk(
    of file: File, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var remaining = file.byteCount
    try reader.forEachChunk { (chunk) throws(KeyhaulError) in
      remaining -= Int64(chunk.count)
      guard remaining >= 0 else {
        throw KeyhaulError(.damaged, "\(quoted(file.name)) has more bytes than its entry claims")
      }
      remainingByteCount -= Int64(chunk.count)
      guard remainingByteCount >= 0 else { throw limits.expansionError }
      try body(chunk)
    }
    guard remaining == 0 else {
      throw KeyhaulError(.truncated, "\(quoted(file.name)) lacks \(HumanReadable.grouped(remaining)) bytes")
    }
  }
}

/// The optional libarchive library. On Linux, it is loaded when the first container is read or written.
package enum ContainerLibrary {
  /// The version of the library, or `nil` if it is not installed.
  package static var version: String? {
    let number = archive_version_number()
    return number == 0 ? nil : "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
  }

  /// The error if no reader can be created.
  static var readFailure: KeyhaulError { missing ?? KeyhaulError(.unreadable, noMemory, errno: .noMemory) }
  /// The error if no writer can be created.
  static var writeFailure: KeyhaulError { missing ?? .writing(noMemory, .noMemory) }

  private static let noMemory = "out of memory"

  /// The error if the library is missing, otherwise `nil`.
  private static var missing: KeyhaulError? {
    keyhaul_archive_absence().map { message in
      let text = String(cString: message)
      return KeyhaulError(.libraryMissing, text, errno: .resourceShortage(in: text))
    }
  }
}

extension ContainerFormat {
  /// Detects the format of a container from its first bytes, without consuming them.
  ///
  /// - Throws: `.notABackup` if it is not a container, `.truncated` if it ends too early.
  package init(_ source: FileDescriptorSource) throws(KeyhaulError) {
    let start = try source.peek(ContainerSource.blockByteCount)
    if start.isEmpty { throw KeyhaulError(.notABackup, "it is empty") }
    if let format = ContainerFormat(start) {
      self = format
      return
    }
    if FileKeychain.begins(with: start) {
      throw KeyhaulError(.notABackup, "it is \(FileKeychain.phrase), which Keyhaul cannot read")
    }
    // A tar header contains zero bytes after the name, and a text file does not.
    guard start.count >= ContainerSource.blockByteCount || !start.contains(0) else {
      throw KeyhaulError(.truncated, "it ends after \(start.count) bytes")
    }
    throw KeyhaulError(.notABackup, "it is not a folder, a tar file or a zip file")
  }

  /// Detects the format by its signature. A tar is recognized by its first header, or by the zeros of an empty tar.
  private init?(_ bytes: UnsafeRawBufferPointer) {
    if let format = Self.allCases.first(where: { $0.signatures.contains { bytes.starts(with: $0) } }) {
      self = format
    } else {
      guard bytes.count >= ContainerSource.blockByteCount else { return nil }
      let block = bytes[..<ContainerSource.blockByteCount]
      guard block.allSatisfy({ $0 == 0 }) || Self.isTarChecksumValid(block) else { return nil }
      self = .tar
    }
  }

  /// Returns whether the checksum in a tar header equals the sum of the header's bytes, with spaces instead of the
  /// checksum.
  ///
  /// Source: POSIX pax, `ustar` interchange format: the checksum has octal digits in the bytes 148 to 155.
  private static func isTarChecksumValid(_ header: Slice<UnsafeRawBufferPointer>) -> Bool {
    let checksumField = 148..<156
    var sum = 0
    var storedSum = 0
    for (index, byte) in header.enumerated() {
      guard checksumField.contains(index) else {
        sum += Int(byte)
        continue
      }
      sum += Int(UInt8(ascii: " "))
      if (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) {
        storedSum = storedSum << 3 | Int(byte - UInt8(ascii: "0"))
      }
    }
    return sum == storedSum
  }
}
