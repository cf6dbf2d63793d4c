package import BackupArchive
import KeychainFormats

/// A file of a backup that is about to be written, with the bytes as they are stored.
package struct StoredFile: Sendable, Equatable {
  /// Relative to the backup's directory, one or two parts.
  package let path: String
  package let bytes: [UInt8]

  package init(path: String, bytes: [UInt8]) {
    self.path = path
    self.bytes = bytes
  }
}

/// A whole backup that is about to be written.
package struct StoredBackup: Sendable, Equatable {
  /// The name of the directory around the files, in one file and where a directory already holds other things.
  package let directoryName: String
  /// Seconds since 1970, the modification time of every entry.
  package let modificationTime: Int64
  /// Whether its files are ciphertext.
  package let isEncrypted: Bool
  /// In the order in which they are written.
  package let files: [StoredFile]

  package init(directoryName: String, modificationTime: Int64, isEncrypted: Bool = false, files: [StoredFile]) {
    self.directoryName = directoryName
    self.modificationTime = modificationTime
    self.isEncrypted = isEncrypted
    self.files = files
  }

  package var byteCount: Int64 { files.reduce(0) { $0 + Int64($1.bytes.count) } }
}

extension StoredBackup {
  package var outgoing: OutgoingBackup {
    OutgoingBackup(directoryName: directoryName, byteCount: byteCount, isEncrypted: isEncrypted) {
      (sink) throws(WriteFailure) in
      for file in files { try sink.add(EntryName(file.path), file.bytes, modificationTime: modificationTime) }
    }
  }
}
