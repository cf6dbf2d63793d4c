package import Basics
import KeychainFormats

/// Takes the files of a backup that is being written, one after the other, each in portions.
package protocol StoredFileSink: AnyObject {
  /// Begins a file of exactly so many bytes.
  ///
  /// - Parameter path: Relative to the backup's directory.
  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(KeyhaulError)
  func write(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError)
  func end() throws(KeyhaulError)
  /// Takes a file as it stands in a directory, without its bytes being copied.
  ///
  /// - Parameters:
  ///   - path: Relative to both backups' directories.
  ///   - directory: Of the backup that has it.
  ///   - status: Of the file that is meant.
  /// - Returns: Whether it was taken; where not, its bytes have to be given.
  func take(_ path: String, from directory: DirectoryHandle, _ status: FileStatus) throws(KeyhaulError) -> Bool
}

extension StoredFileSink {
  package func take(
    _ path: String, from directory: DirectoryHandle, _ status: FileStatus
  ) throws(KeyhaulError) -> Bool { false }

  package func add(_ path: EntryName, _ bytes: [UInt8], modificationTime: Int64) throws(KeyhaulError) {
    try begin(path, byteCount: Int64(bytes.count), modificationTime: modificationTime)
    try write(bytes)
    try end()
  }

  package func write(_ bytes: [UInt8]) throws(KeyhaulError) {
    try bytes.withRawBytes { (buffer) throws(KeyhaulError) in try write(buffer) }
  }
}

/// A backup on its way to where it should stand.
package struct OutgoingBackup {
  /// The name of the directory around the files, in one file and where a directory already holds other things; `nil`
  /// where the files have their whole names.
  package let directoryName: String?
  /// About how many bytes it needs, to say where there is no room.
  package let byteCount: Int64
  /// Whether its files are ciphertext, which no compression makes shorter.
  package let isEncrypted: Bool
  /// Sends every file.
  package let send: (any StoredFileSink) throws(KeyhaulError) -> Void
  /// Looks at what was written, by its path, before it gets its name.
  package var check: (String) throws(KeyhaulError) -> Void = { _ in }

  package init(
    directoryName: String?, byteCount: Int64, isEncrypted: Bool,
    send: @escaping (any StoredFileSink) throws(KeyhaulError) -> Void
  ) {
    self.directoryName = directoryName
    self.byteCount = byteCount
    self.isEncrypted = isEncrypted
    self.send = send
  }
}
