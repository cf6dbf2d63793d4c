package import Basics
import CArchive
import KeychainFormats
import SystemPackage

/// Goes through the files of one container once more, in their order.
package final class ContainerWalk {
  package struct File {
    /// The entry's whole name.
    package let name: EntryName
    package let path: EntryPath
    package let byteCount: Int64
    /// In seconds since 1970.
    package let modificationTime: Int64
  }

  /// Whether a file broke off in such a way that what follows it can only be found by going through all again.
  package var isBroken: Bool { reader.isBroken }
  private let reader: LibArchiveReader
  private let limits: ArchiveLimits
  /// How many bytes a zip's files may still become; its entries can lie on top of each other. What packs a whole tar
  /// watches that itself.
  private var remainingBytes: Int64 = .max
  private var ledger: EntryLedger

  /// - Parameter feed: Stands at its start.
  package init(_ feed: DescriptorFeed, as format: ContainerFormat, limits: ArchiveLimits) throws(KeyhaulError) {
    if format == .zip {
      remainingBytes = limits.decompressedByteCount(of: feed.fileByteCount ?? 0)
      reader = try LibArchiveReader(try ZipNameFeed(feed, limits: limits), reading: .zip)
    } else if format.isCompressedTar {
      reader = try LibArchiveReader(try DecompressedFeed(feed, as: format, limits: limits), reading: .tar)
    } else {
      reader = try LibArchiveReader(feed, reading: .tar)
    }
    self.limits = limits
    ledger = EntryLedger(limits: limits, containerByteCount: feed.fileByteCount)
  }

  /// The next regular file; `nil` at the end. What was not read of the last one is passed over.
  package func next() throws(KeyhaulError) -> File? {
    guard remainingBytes >= 0 else { throw limits.expansionError }
    while try reader.nextHeader() {
      guard let entry = reader.entry else { continue }
      guard let name = entry.name else {
        throw KeyhaulError(.hostile, "entry \(ledger.entryCount + 1) has a name that cannot be read")
      }
      _ = try ledger.admit(name: name, kind: entry.kind, byteCount: entry.byteCount)
      guard entry.kind == .file else { continue }
      do throws(EntryPathFault) {
        let path = try EntryPath(name, limit: .max)
        return File(
          name: name, path: path, byteCount: entry.byteCount, modificationTime: reader.modificationTime)
      } catch {
        throw ledger.hostile(name, error.text)
      }
    }
    return nil
  }

  /// Lends the bytes of the file that `next` gave last.
  ///
  /// - Throws: `.damaged` and `.truncated` where it is not as long as its entry claims, and what `body` throws.
  package func forEachPortion(
    of file: File, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var remaining = file.byteCount
    try reader.forEachPortion { (portion) throws(KeyhaulError) in
      remaining -= Int64(portion.count)
      guard remaining >= 0 else {
        throw KeyhaulError(.damaged, "\(quoted(file.name)) has more bytes than its entry claims")
      }
      remainingBytes -= Int64(portion.count)
      guard remainingBytes >= 0 else { throw limits.expansionError }
      try body(portion)
    }
    guard remaining == 0 else {
      throw KeyhaulError(.truncated, "\(quoted(file.name)) lacks \(HumanReadable.grouped(remaining)) bytes")
    }
  }
}

/// libarchive, which is there or is not: on Linux it is opened when the first container is read or written.
package enum ContainerLibrary {
  /// The version that this process has; `nil` if the library is not there.
  package static var version: String? {
    let number = archive_version_number()
    return number == 0 ? nil : "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
  }

  /// Why it gave nothing to read with.
  static var readFailure: KeyhaulError { missing ?? KeyhaulError(.unreadable, noMemory, errno: .noMemory) }
  /// Why it gave nothing to write with.
  static var writeFailure: KeyhaulError { missing ?? .writing(noMemory, .noMemory) }

  private static let noMemory = "out of memory"

  /// `nil` if it is there.
  private static var missing: KeyhaulError? {
    keyhaul_archive_absence().map { text in
      let text = String(cString: text)
      return KeyhaulError(.libraryMissing, text, errno: .shortage(in: text))
    }
  }
}

extension ContainerFormat {
  /// What the first bytes of a feed say that it is. They are not taken away from it.
  ///
  /// - Throws: `.notABackup` for what is no container, `.truncated` for the beginning of one.
  package init(_ feed: DescriptorFeed) throws(KeyhaulError) {
    let start = try feed.peek(ContainerSource.blockByteCount)
    if start.isEmpty { throw KeyhaulError(.notABackup, "it is empty") }
    if let format = ContainerFormat(start) {
      self = format
      return
    }
    if FileKeychain.begins(with: start) {
      throw KeyhaulError(.notABackup, "it is \(FileKeychain.phrase), which Keyhaul cannot read")
    }
    // The first header of a tar has a name and then zeros. A text has none, however short it is.
    guard start.count >= ContainerSource.blockByteCount || !start.contains(0) else {
      throw KeyhaulError(.truncated, "it ends after \(start.count) bytes")
    }
    throw KeyhaulError(.notABackup, "it is not a folder, a tar file or a zip file")
  }

  /// Source: POSIX pax ("ustar" at 257; older tars have only a checksum).
  private init?(_ bytes: UnsafeRawBufferPointer) {
    if let format = Self.allCases.first(where: { $0.signatures.contains { bytes.starts(with: $0) } }) {
      self = format
    } else {
      guard bytes.count >= ContainerSource.blockByteCount else { return nil }
      let block = bytes[..<ContainerSource.blockByteCount]
      guard block.allSatisfy({ $0 == 0 }) || Self.checksumFits(block) else { return nil }
      self = .tar
    }
  }

  /// The header's bytes added up, its own checksum field taken as spaces, equal the octal number in that field.
  private static func checksumFits(_ block: Slice<UnsafeRawBufferPointer>) -> Bool {
    let field = 148..<156
    var sum = 0
    for (index, byte) in block.enumerated() { sum += field.contains(index) ? 32 : Int(byte) }
    var stored = 0
    for (index, byte) in block.enumerated() where field.contains(index) && (48...55).contains(byte) {
      stored = stored << 3 | Int(byte - 48)
    }
    return sum == stored
  }
}
