import Basics
import KeychainFormats

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
  package init(_ feed: DescriptorFeed, as format: ContainerFormat, limits: ArchiveLimits) throws(BackupArchiveError) {
    switch format {
    case .tar: reader = try LibArchiveReader(feed, reading: .tar)
    case .zip:
      remainingBytes = limits.decompressedByteCount(of: feed.fileByteCount ?? 0)
      reader = try LibArchiveReader(try ZipNameFeed(feed, limits: limits), reading: .zip)
    case .gzippedTar, .zstandardTar:
      reader = try LibArchiveReader(try DecompressedFeed(feed, as: format, limits: limits), reading: .tar)
    }
    self.limits = limits
    ledger = EntryLedger(limits: limits, containerByteCount: feed.fileByteCount)
  }

  /// The next regular file; `nil` at the end. What was not read of the last one is passed over.
  package func next() throws(BackupArchiveError) -> File? {
    guard remainingBytes >= 0 else { throw limits.expansionError }
    while try reader.nextHeader() {
      guard let entry = reader.entry else { continue }
      guard let name = entry.name else {
        throw BackupArchiveError(.hostile, "entry \(ledger.entryCount + 1) has a name that cannot be read")
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
  package func forEachPortion<Failure: WalkFailure>(
    of file: File, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    var remaining = file.byteCount
    try reader.forEachPortion { (portion) throws(Failure) in
      remaining -= Int64(portion.count)
      guard remaining >= 0 else {
        throw Failure(
          reading: BackupArchiveError(.damaged, "\(quoted(file.name)) has more bytes than its entry claims"))
      }
      remainingBytes -= Int64(portion.count)
      guard remainingBytes >= 0 else { throw Failure(reading: limits.expansionError) }
      try body(portion)
    }
    guard remaining == 0 else {
      throw Failure(
        reading: BackupArchiveError(.truncated, "\(quoted(file.name)) lacks \(Amounts.grouped(remaining)) bytes"))
    }
  }
}
