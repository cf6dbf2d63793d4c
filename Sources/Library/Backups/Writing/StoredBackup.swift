package import Basics
import KeychainFormats

/// A file of a new backup, with its stored bytes.
package struct StoredFile: Sendable {
  /// The path relative to the backup's directory, with one or two components.
  package let path: String
  package let content: SpooledData

  package init(path: String, content: SpooledData) {
    self.path = path
    self.content = content
  }

  package init(path: String, bytes: [UInt8]) throws(KeyhaulError) {
    self.init(path: path, content: try SpooledData(bytes))
  }

  fileprivate func send(to sink: any StoredFileSink, modificationTime: Int64) throws(KeyhaulError) {
    try sink.begin(EntryName(path), byteCount: Int64(content.byteCount), modificationTime: modificationTime)
    try content.forEachChunk { (chunk) throws(KeyhaulError) in
      try sink.write(chunk)
    }
    try sink.end()
  }
}

/// A complete new backup.
package struct StoredBackup: Sendable {
  /// The name of the backup's directory, if it is written into a container or next to other content.
  package let directoryName: String
  /// The modification time of all entries in seconds since 1970.
  package let modificationTime: Int64
  /// Whether the files are encrypted.
  package let isEncrypted: Bool
  /// The files in the order in which they are written.
  package let files: [StoredFile]

  package init(directoryName: String, modificationTime: Int64, isEncrypted: Bool = false, files: [StoredFile]) {
    self.directoryName = directoryName
    self.modificationTime = modificationTime
    self.isEncrypted = isEncrypted
    self.files = files
  }

  package var byteCount: Int64 { files.reduce(0) { $0 + Int64($1.content.byteCount) } }
}

extension StoredBackup {
  package var outgoing: OutgoingBackup {
    OutgoingBackup(directoryName: directoryName, byteCount: byteCount, isEncrypted: isEncrypted) {
      (sink) throws(KeyhaulError) in
      for file in files { try file.send(to: sink, modificationTime: modificationTime) }
    }
  }
}
