import Basics
import SystemPackage

/// The files of a backup's directory in a fixed order, metadata files first.
struct DirectoryFiles {
  let handle: DirectoryHandle
  private let system: FileSystem

  init(_ path: String, system: FileSystem) throws(KeyhaulError) {
    handle = DirectoryHandle(try opened(path) { () throws(Errno) in try system.openDirectory(path) })
    self.system = system
  }

  /// A file that is open for reading.
  struct File {
    /// The actual path, relative to the backup's directory.
    let storedPath: String
    /// The path in the backup. It differs from `storedPath` if a payload is at an unusual path.
    let path: String
    let status: FileStatus
    var byteCount: Int64 { status.byteCount }
    fileprivate let content: SharedDescriptor
  }

  /// Opens each file of the backup.
  ///
  /// - Parameters:
  ///   - pathInBackup: Returns the usual path of a payload, or `nil` if it is not part of the backup.
  ///   - body: Receives a file.
  /// - Returns: The paths of unrelated files and folders.
  func forEachFile(
    pathInBackup: (String) throws(KeyhaulError) -> String?, _ body: (File) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> [String] {
    var unrelated: [String] = []
    var payloads: [(name: String, path: String)] = []
    var payloadDirectories: [String] = []
    let entryNames = Set(try names(in: handle.descriptor, of: "", unrelated: &unrelated))
    for name in BackupPath.metadataFileNames where entryNames.contains(name) {
      try withFile(name, in: handle.descriptor, at: name, as: name, body)
    }
    for name in entryNames.subtracting(BackupPath.metadataFileNames).sorted() {
      if BackupPath.payload(at: name) != nil {
        if let path = try pathInBackup(name) { payloads.append((name, path)) } else { unrelated.append(name) }
      } else if BackupPath.isPayloadDirectory(name), try isDirectory(name) {
        payloadDirectories.append(name)
      } else {
        unrelated.append(name)
      }
    }
    for (name, path) in payloads { try withFile(name, in: handle.descriptor, at: name, as: path, body) }
    for name in payloadDirectories {
      try forEachFile(inPayloadDirectory: name, pathInBackup: pathInBackup, unrelated: &unrelated, body)
    }
    return unrelated.sorted()
  }

  private func forEachFile(
    inPayloadDirectory directoryName: String, pathInBackup: (String) throws(KeyhaulError) -> String?,
    unrelated: inout [String], _ body: (File) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let directory = try systemCall(directoryName) { () throws(Errno) in
      try system.openDirectory(directoryName.systemName, in: handle.descriptor)
    }
    for name in try names(in: directory, of: directoryName + "/", unrelated: &unrelated).sorted() {
      let storedPath = "\(directoryName)/\(name)"
      if BackupPath.payload(at: storedPath) != nil, let path = try pathInBackup(storedPath) {
        try withFile(name, in: directory, at: storedPath, as: path, body)
      } else {
        unrelated.append(storedPath)
      }
    }
  }

  /// Returns whether an entry is a directory. Another file may have the name of a payload directory.
  private func isDirectory(_ name: String) throws(KeyhaulError) -> Bool {
    try systemCall(name) { () throws(Errno) in
      try system.status(of: name.systemName, in: handle.descriptor)?.kind == .directory
    }
  }

  /// Passes the content of a file to a closure in chunks. Works only once for each file.
  func forEachChunk(
    of file: File, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: FileDescriptorSource.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    let raw = file.content.descriptor.raw
    var count: Int64 = 0
    while count <= file.byteCount {
      let readCount = try systemCall(file.storedPath) { () throws(Errno) in try system.read(raw, into: buffer) }
      if readCount == 0 { break }
      count += Int64(readCount)
      if count <= file.byteCount { try body(UnsafeRawBufferPointer(rebasing: buffer[..<readCount])) }
    }
    guard count == file.byteCount else {
      throw KeyhaulError(.changed, "\(quoted(file.storedPath)) changed its length while it was being read")
    }
  }

  /// Returns the last `count` bytes of a file, or all bytes of a shorter file.
  func lastBytes(_ count: Int, of file: File) throws(KeyhaulError) -> [UInt8] {
    let byteCount = Int(min(Int64(count), file.byteCount))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 16)
    defer { buffer.deallocate() }
    let raw = file.content.descriptor.raw
    var filledCount = 0
    while filledCount < byteCount {
      let remaining = UnsafeMutableRawBufferPointer(rebasing: buffer[filledCount...])
      let offset = file.byteCount - Int64(remaining.count)
      let readCount = try systemCall(file.storedPath) { () throws(Errno) in
        try system.read(raw, at: offset, into: remaining)
      }
      guard readCount > 0 else {
        throw KeyhaulError(.changed, "\(quoted(file.storedPath)) changed its length while it was being read")
      }
      filledCount += readCount
    }
    return Array(buffer)
  }

  /// Returns the names in a directory. Names that are not UTF-8 are added to `unrelated`.
  private func names(
    in directory: borrowing OwnedFileDescriptor, of prefix: String, unrelated: inout [String]
  ) throws(KeyhaulError) -> [String] {
    let names: [FileSystem.Name]
    do throws(Errno) {
      names = try system.names(in: directory)
    } catch {
      throw KeyhaulError(.unreadable, "\(quoted(prefix)): \(error.reason)", errno: error)
    }
    var validNames: [String] = []
    for name in names {
      if let validName = name.validText {
        validNames.append(validName)
      } else {
        unrelated.append(prefix + name.text)
      }
    }
    return validNames
  }

  /// Opens a file and passes it to a closure.
  ///
  /// - Parameters:
  ///   - storedPath: The actual path, relative to the backup's directory.
  ///   - path: The path in the backup.
  private func withFile(
    _ name: String, in directory: borrowing OwnedFileDescriptor, at storedPath: String, as path: String,
    _ body: (File) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let descriptor: OwnedFileDescriptor
    do throws(Errno) {
      descriptor = try system.openForReading(name, in: directory)
    } catch {
      // The first error means a link, and the second one means a socket or a device.
      guard error != .tooManySymbolicLinkLevels, error != .noSuchAddressOrDevice else {
        throw KeyhaulError(.hostile, "\(quoted(storedPath)) is not a regular file")
      }
      throw KeyhaulError(.unreadable, "\(storedPath): \(error.reason)")
    }
    let raw = descriptor.raw
    let status = try systemCall(storedPath) { () throws(Errno) in try system.status(of: raw) }
    guard status.kind == .file else {
      throw KeyhaulError(.hostile, "\(quoted(storedPath)) is not a regular file")
    }
    try body(File(storedPath: storedPath, path: path, status: status, content: SharedDescriptor(descriptor)))
  }

  private func systemCall<Value: ~Copyable>(
    _ path: String, _ body: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    do throws(Errno) {
      return try body()
    } catch {
      throw KeyhaulError(.unreadable, "\(quoted(path)): \(error.reason)", errno: error)
    }
  }
}
