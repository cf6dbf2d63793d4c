/// Goes through the files of one container once more, in order, to copy them.
final class ContainerWalk {
  struct File {
    let name: String
    let path: EntryPath
    let byteCount: Int64
    let modificationTime: Int64
  }

  /// What the container is, by its first bytes.
  let format: ContainerFormat
  private let descriptor: FolderHandle
  private let reader: LibArchiveReader
  private var ledger: EntryLedger

  init(_ path: String, limits: ArchiveLimits, system: FileSystem) throws(BackupArchiveError) {
    let descriptor = try opened(path) { () throws(SystemFailure) in try system.openForReading(path) }
    let feed = try DescriptorFeed(descriptor: descriptor.raw, system: system)
    let start = try feed.peek(ContainerSource.blockByteCount)
    guard let found = ContainerFormat(start) else {
      throw BackupArchiveError(.notABackup, "it is neither a tar nor a zip")
    }
    format = found
    switch found {
    case .tar: reader = try LibArchiveReader(feed, reading: .tar)
    case .zip: reader = try LibArchiveReader(feed, reading: .zip)
    case .gzippedTar, .zstandardTar:
      reader = try LibArchiveReader(try DecompressedFeed(feed, limits: limits), reading: .tar)
    }
    self.descriptor = FolderHandle(descriptor)
    ledger = EntryLedger(limits: limits)
  }

  /// The next regular file; `nil` at the end.
  func next() throws(BackupArchiveError) -> File? {
    while try reader.nextHeader() {
      guard let entry = reader.entry else { continue }
      guard let name = entry.name else {
        throw BackupArchiveError(.hostile, "entry \(ledger.entryCount + 1) has a name that is not UTF-8")
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

  /// Hands on the bytes of the file that `next` gave.
  func forEachPortion(
    of file: File, _ body: (UnsafeRawBufferPointer) throws(WriteFailure) -> Void
  ) throws(WriteFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: DescriptorFeed.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    var count: Int64 = 0
    while true {
      let portion = try obtaining { () throws(BackupArchiveError) in try reader.read(into: buffer) }
      if portion == 0 { break }
      count += Int64(portion)
      guard count <= file.byteCount else { break }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<portion]))
    }
    guard count == file.byteCount else {
      throw .source(BackupArchiveError(.damaged, "\(quoted(file.name)) has another length than its entry claims"))
    }
  }
}

extension ContainerFormat {
  /// Sources: RFC 1952, RFC 8878, PKWARE APPNOTE 4.3.7; what is none of them may be a tar.
  init?(_ start: UnsafeRawBufferPointer) {
    guard start.count >= 4 else { return nil }
    if start.starts(with: [0x1F, 0x8B]) {
      self = .gzippedTar
    } else if start.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
      self = .zstandardTar
    } else if start.starts(with: [0x50, 0x4B]) {
      self = .zip
    } else {
      self = .tar
    }
  }
}
