package import Basics
import KeychainFormats

/// A sink for the files of a new backup.
package protocol StoredFileSink: AnyObject {
  /// Begins a file of exactly the given size.
  ///
  /// - Parameter path: The path relative to the backup's directory.
  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(KeyhaulError)
  func write(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError)
  func end() throws(KeyhaulError)
  /// Adds a file of another directory as a hard link.
  ///
  /// - Parameters:
  ///   - path: The path relative to both backups' directories.
  ///   - directory: The other backup's directory.
  ///   - status: The status that the file must have.
  /// - Returns: `false` if the file's bytes must be copied.
  func link(_ path: String, from directory: DirectoryHandle, _ status: FileStatus) throws(KeyhaulError) -> Bool
}

extension StoredFileSink {
  package func link(
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

/// A backup that is being written.
package struct OutgoingBackup {
  /// The name of the directory to create for the files, in a container or in a directory with other content. `nil` to
  /// create no directory, because the files are sent with their full names.
  package let directoryName: String?
  /// The approximate size, for errors about free space.
  package let byteCount: Int64
  /// Whether the files are encrypted, so that compression has no effect.
  package let isEncrypted: Bool
  /// Sends all files to a sink.
  package let send: (any StoredFileSink) throws(KeyhaulError) -> Void
  /// Checks the written backup at its temporary path.
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
