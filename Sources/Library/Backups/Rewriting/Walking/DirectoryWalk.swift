import Basics
import SystemPackage

/// Goes through the files of a backup's directory in a fixed order, to copy them: the parts with a name of their own
/// first.
struct DirectoryWalk {
  let handle: DirectoryHandle
  private let system: FileSystem

  init(_ path: String, system: FileSystem) throws(BackupArchiveError) {
    handle = DirectoryHandle(try opened(path) { () throws(Errno) in try system.openDirectory(path) })
    self.system = system
  }

  /// A file that is open for reading.
  struct File {
    /// Where it lies, relative to the backup's directory.
    let storedPath: String
    /// Where it belongs, which is elsewhere for a payload with another name than a device gives it.
    let path: String
    let status: FileStatus
    var byteCount: Int64 { status.byteCount }
    fileprivate let handle: DirectoryHandle
  }

  /// Opens each file that belongs to a backup.
  ///
  /// - Parameter place: Where the file at a path belongs; `nil` for one that isn't the backup's.
  /// - Returns: The paths of files that don't.
  func forEachFile(
    placedBy place: (String) throws(WriteFailure) -> String?, _ body: (File) throws(WriteFailure) -> Void
  ) throws(WriteFailure) -> [String] {
    var foreign: [String] = []
    var directories: [String] = []
    var payloads: [(name: String, place: String)] = []
    let found = Set(try names(in: handle.descriptor, of: "", foreign: &foreign))
    for name in BackupPath.parts where found.contains(name) {
      try lend(name, in: handle.descriptor, at: name, as: name, body)
    }
    for name in found.subtracting(BackupPath.parts).sorted() {
      if BackupPath.payload(at: name) != nil {
        if let place = try place(name) { payloads.append((name, place)) } else { foreign.append(name) }
      } else if BackupPath.isPayloadDirectory(name), try isDirectory(name) {
        directories.append(name)
      } else {
        foreign.append(name)
      }
    }
    for (name, place) in payloads { try lend(name, in: handle.descriptor, at: name, as: place, body) }
    for name in directories {
      let directory = try systemCall(name) { () throws(Errno) in
        try system.openDirectory(name.systemName, in: handle.descriptor)
      }
      for payload in try names(in: directory, of: name + "/", foreign: &foreign).sorted() {
        let path = "\(name)/\(payload)"
        if BackupPath.payload(at: path) != nil, let place = try place(path) {
          try lend(payload, in: directory, at: path, as: place, body)
        } else {
          foreign.append(path)
        }
      }
    }
    return foreign.sorted()
  }

  /// A file of somebody else's may have the name of a directory of payloads.
  private func isDirectory(_ name: String) throws(WriteFailure) -> Bool {
    try systemCall(name) { () throws(Errno) in
      try system.status(of: name.systemName, in: handle.descriptor)?.kind == .directory
    }
  }

  /// Hands on the bytes of a file.
  func forEachPortion(
    of file: File, _ body: (UnsafeRawBufferPointer) throws(WriteFailure) -> Void
  ) throws(WriteFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: DescriptorFeed.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    let raw = file.handle.descriptor.raw
    var count: Int64 = 0
    while count <= file.byteCount {
      let portion = try systemCall(file.storedPath) { () throws(Errno) in try system.read(raw, into: buffer) }
      if portion == 0 { break }
      count += Int64(portion)
      if count <= file.byteCount { try body(UnsafeRawBufferPointer(rebasing: buffer[..<portion])) }
    }
    guard count == file.byteCount else {
      throw .source(
        BackupArchiveError(.changed, "\(quoted(file.storedPath)) changed its length while it was being read"))
    }
  }

  /// Up to so many bytes of a file's end.
  func lastBytes(_ count: Int, of file: File) throws(WriteFailure) -> [UInt8] {
    let wanted = Int(min(Int64(count), file.byteCount))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: wanted, alignment: 16)
    defer { buffer.deallocate() }
    let raw = file.handle.descriptor.raw
    var done = 0
    while done < wanted {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let offset = file.byteCount - Int64(wanted - done)
      let read = try systemCall(file.storedPath) { () throws(Errno) in try system.read(raw, at: offset, into: rest) }
      guard read > 0 else {
        throw .source(
          BackupArchiveError(.changed, "\(quoted(file.storedPath)) changed its length while it was being read"))
      }
      done += read
    }
    return Array(buffer)
  }

  private func names(
    in directory: borrowing Descriptor, of prefix: String, foreign: inout [String]
  ) throws(WriteFailure) -> [String] {
    let names: [FileSystem.Name]
    do throws(Errno) {
      names = try system.names(in: directory)
    } catch {
      throw .source(BackupArchiveError(.unreadable, "\(quoted(prefix)): \(error.reason)"))
    }
    var texts: [String] = []
    for name in names {
      if let text = name.validText {
        texts.append(text)
      } else {
        foreign.append(prefix + name.text)
      }
    }
    return texts
  }

  private func lend(
    _ name: String, in directory: borrowing Descriptor, at path: String, as place: String,
    _ body: (File) throws(WriteFailure) -> Void
  ) throws(WriteFailure) {
    let descriptor: Descriptor
    do throws(Errno) {
      descriptor = try system.openForReading(name, in: directory)
    } catch {
      let isLink = error == .tooManySymbolicLinkLevels || error == .noSuchAddressOrDevice
      throw .source(
        BackupArchiveError(
          isLink ? .hostile : .unreadable, isLink ? "\(quoted(path)) is not a regular file" : "\(path): \(error.reason)"
        ))
    }
    let raw = descriptor.raw
    let status = try systemCall(path) { () throws(Errno) in try system.status(of: raw) }
    guard status.kind == .file else {
      throw .source(BackupArchiveError(.hostile, "\(quoted(path)) is not a regular file"))
    }
    try body(File(storedPath: path, path: place, status: status, handle: DirectoryHandle(descriptor)))
  }

  private func systemCall<Value: ~Copyable>(
    _ path: String, _ body: () throws(Errno) -> Value
  ) throws(WriteFailure) -> Value {
    do throws(Errno) {
      return try body()
    } catch {
      throw .source(BackupArchiveError(.unreadable, "\(quoted(path)): \(error.reason)"))
    }
  }
}
