import Files
import SystemPackage

/// Writes a backup's files into a folder of their own, each synced before the next.
final class FolderSink: StoredFileSink {
  private let system: FileSystem
  /// Claimed for as long as this lives.
  private let folder: Descriptor
  private var innerFolders: Set<String> = []
  private var file: Descriptor?
  private var expectedByteCount: Int64 = 0

  /// - Parameter folder: New and empty.
  init(_ folder: consuming Descriptor, system: FileSystem) {
    self.folder = folder
    self.system = system
  }

  /// Gives the folder other permissions than its owner's alone.
  func setPermissions(_ permissions: UInt32) throws(Errno) {
    try system.setPermissions(permissions, of: folder)
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
    guard names.count == 2 else { return try system.createFile(path, in: folder) }
    if innerFolders.insert(names[0]).inserted { try system.makeDirectory(names[0], in: folder) }
    let inner = try system.openDirectory(names[0].systemName, in: folder)
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
    for name in innerFolders.sorted() { try system.syncDirectory(system.openDirectory(name.systemName, in: folder)) }
    try system.syncDirectory(folder)
  }
}
