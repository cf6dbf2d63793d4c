import Basics
import KeychainFormats

extension ContainerFormat {
  /// What the first bytes of a feed say that it is. They are not taken away from it.
  ///
  /// - Throws: `.notABackup` for what is no container, `.truncated` for the beginning of one.
  package init(_ feed: DescriptorFeed) throws(BackupArchiveError) {
    let start = try feed.peek(ContainerSource.blockByteCount)
    if start.isEmpty { throw BackupArchiveError(.notABackup, "it is empty") }
    if let format = ContainerFormat(start) {
      self = format
      return
    }
    if FileKeychain.begins(with: start) {
      throw BackupArchiveError(.notABackup, "it is \(FileKeychain.phrase), which Keyhaul cannot read")
    }
    // The first header of a tar has a name and then zeros. A text has none, however short it is.
    guard start.count >= ContainerSource.blockByteCount || !start.contains(0) else {
      throw BackupArchiveError(.truncated, "it ends after \(start.count) bytes")
    }
    throw BackupArchiveError(.notABackup, "it is not a folder, a tar file or a zip file")
  }

  /// Sources: POSIX pax ("ustar" at 257; older tars have only a checksum), RFC 1952, RFC 8878, PKWARE APPNOTE 4.3.7.
  private init?(_ bytes: UnsafeRawBufferPointer) {
    if bytes.starts(with: [0x1F, 0x8B]) {
      self = .gzippedTar
    } else if bytes.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
      self = .zstandardTar
    } else if bytes.starts(with: [0x50, 0x4B, 3, 4]) || bytes.starts(with: [0x50, 0x4B, 5, 6]) {
      self = .zip
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
