import Files
import SystemPackage

/// Writes a backup's files into a directory of their own, each synced before the next.
final class DirectorySink: StoredFileSink {
  private let system: FileSystem
  /// Claimed for as long as this lives.
  private let directory: Descriptor
  private var innerDirectories: Set<String> = []
  private var file: Descriptor?
  private var expectedByteCount: Int64 = 0

  /// - Parameter directory: New and empty.
  init(_ directory: consuming Descriptor, system: FileSystem) {
    self.directory = directory
    self.system = system
  }

  /// Gives the directory other permissions than its owner's alone.
  func setPermissions(_ permissions: UInt32) throws(Errno) {
    try system.setPermissions(permissions, of: directory)
  }

  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(WriteFailure) {
    do throws(Errno) {
      file = try create(path.shown)
    } catch {
      throw .system(error)
    }
    expectedByteCount = byteCount
  }

  private func create(_ path: String) throws(Errno) -> Descriptor {
    let names = path.split(separator: "/").map(String.init)
    guard names.count == 2 else { return try system.createFile(path, in: directory) }
    if innerDirectories.insert(names[0]).inserted { try system.makeDirectory(names[0], in: directory) }
    let inner = try system.openDirectory(names[0].systemName, in: directory)
    return try system.createFile(names[1], in: inner)
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(WriteFailure) {
    guard let raw = file?.raw else { return }
    do throws(Errno) {
      try system.writeAll(bytes, to: raw)
    } catch {
      throw .system(error)
    }
  }

  func end() throws(WriteFailure) {
    guard let file = file.take() else { return }
    do throws(Errno) {
      try system.seal(file, byteCount: expectedByteCount)
    } catch {
      throw .system(error)
    }
  }

  /// Asks the disk to keep the names too. Nothing may follow.
  func finish() throws(Errno) {
    for name in innerDirectories.sorted() {
      try system.syncDirectory(system.openDirectory(name.systemName, in: directory))
    }
    try system.syncDirectory(directory)
  }
}
