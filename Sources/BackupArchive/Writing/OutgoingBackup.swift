import KeychainFormats

/// Takes the files of a backup that is being written, one after the other, each in portions.
protocol StoredFileSink: AnyObject {
  /// Begins a file of exactly so many bytes.
  ///
  /// - Parameter path: Relative to the backup's directory.
  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(WriteFailure)
  func write(_ bytes: UnsafeRawBufferPointer) throws(WriteFailure)
  func end() throws(WriteFailure)
}

extension StoredFileSink {
  func add(_ path: EntryName, _ bytes: [UInt8], modificationTime: Int64) throws(WriteFailure) {
    try begin(path, byteCount: Int64(bytes.count), modificationTime: modificationTime)
    try write(bytes)
    try end()
  }

  func write(_ bytes: [UInt8]) throws(WriteFailure) {
    try bytes.withRawBytes { (buffer) throws(WriteFailure) in try write(buffer) }
  }
}

/// A backup on its way to where it should stand.
struct OutgoingBackup {
  /// The name of the directory around the files, in one file and where a directory already holds other things; `nil`
  /// where the files have their whole names.
  let directoryName: String?
  /// About how many bytes it needs, to say where there is no room.
  let byteCount: Int64
  /// Sends every file.
  let send: (any StoredFileSink) throws(WriteFailure) -> Void
  /// Looks at what was written, by its path, before it gets its name.
  var check: (String) throws(BackupArchiveError) -> Void = { _ in }
}

extension StoredBackup {
  var outgoing: OutgoingBackup {
    OutgoingBackup(directoryName: directoryName, byteCount: byteCount) { (sink) throws(WriteFailure) in
      for file in files { try sink.add(EntryName(file.path), file.bytes, modificationTime: modificationTime) }
    }
  }
}
