#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Reads a backup's folder, every file relative to its open handle: a path that is swapped meanwhile changes nothing.
struct FolderSource {
  let system: FileSystem
  let limits: ArchiveLimits

  /// Reads the files that this module knows; payloads stay where they are.
  func read(_ folder: borrowing Descriptor) throws(BackupArchiveError) -> StoredParts {
    var parts = StoredParts()
    for part in StoredPart.allCases {
      parts[part] = try read(part, in: folder)
    }
    guard parts.manifest != nil else { throw BackupArchiveError(.notABackup, "it has no Manifest.plist") }
    return parts
  }

  private func read(_ part: StoredPart, in folder: borrowing Descriptor) throws(BackupArchiveError) -> [UInt8]? {
    let names = part.path.split(separator: "/").map(String.init)
    guard names.count == 2 else { return try readFile(part, named: part.path, in: folder) }
    let inner = try present(part) { () throws(SystemFailure) in
      try system.openDirectory(names[0].systemName, in: folder)
    }
    guard let inner else { return nil }
    return try readFile(part, named: names[1], in: inner)
  }

  private func readFile(
    _ part: StoredPart, named name: String, in folder: borrowing Descriptor
  ) throws(BackupArchiveError) -> [UInt8]? {
    let file = try present(part) { () throws(SystemFailure) in try system.openForReading(name, in: folder) }
    guard let file else { return nil }
    let raw = file.raw
    let status = try explained(part) { () throws(SystemFailure) in try system.status(of: raw) }
    guard status.kind == .file else { throw BackupArchiveError(.hostile, "\(part.path) is not a regular file") }
    return part == .oldDatabase ? [] : try readWhole(raw, part: part, expected: status.byteCount)
  }

  /// What `body` opens, or `nil` where nothing is there.
  private func present(
    _ part: StoredPart, _ body: () throws(SystemFailure) -> Descriptor
  ) throws(BackupArchiveError) -> Descriptor? {
    do throws(SystemFailure) {
      return try body()
    } catch {
      if error.number == ENOENT { return nil }
      throw irregular(part, error)
    }
  }

  private func explained<Value>(
    _ part: StoredPart, _ body: () throws(SystemFailure) -> Value
  ) throws(BackupArchiveError) -> Value {
    do throws(SystemFailure) {
      return try body()
    } catch {
      throw irregular(part, error)
    }
  }

  /// ELOOP and ENOTDIR are how a refused link shows itself; a socket gives ENXIO.
  private func irregular(_ part: StoredPart, _ failure: SystemFailure) -> BackupArchiveError {
    switch failure.number {
    case ELOOP, ENOTDIR: BackupArchiveError(.hostile, "\(part.path) is reached through a link or is not a regular file")
    case ENXIO: BackupArchiveError(.hostile, "\(part.path) is not a regular file")
    default: BackupArchiveError(.unreadable, "\(part.path): \(failure.text)")
    }
  }

  private func readWhole(
    _ file: Int32, part: StoredPart, expected: Int64
  ) throws(BackupArchiveError) -> [UInt8] {
    let limit = part.limit(limits)
    guard expected <= limit else {
      throw BackupArchiveError(
        .overLimit, "\(part.path) has \(grouped(expected)) bytes, over \(grouped(Int64(limit)))")
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(expected))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: DescriptorFeed.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try explained(part) { () throws(SystemFailure) in try system.read(file, into: buffer) }
      if count == 0 { return bytes }
      guard bytes.count + count <= limit else {
        throw BackupArchiveError(.overLimit, "\(part.path) grew over \(grouped(Int64(limit))) bytes while it was read")
      }
      bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Lists the payloads in the 256 folders that may hold some.
  func payloads(of folder: borrowing Descriptor) throws(BackupArchiveError) -> StoredPayloads {
    var payloads = StoredPayloads()
    do {
      for name in try system.names(in: folder) {
        let prefix = name.text
        guard prefix.utf8.count == 2, isFileIdentifier(prefix + String(repeating: "0", count: 38)),
          try system.status(of: name, in: folder)?.kind == .directory
        else { continue }
        let inner = try system.openDirectory(name, in: folder)
        for file in try system.names(in: inner) {
          guard isFileIdentifier(file.text), file.text.hasPrefix(prefix),
            let status = try system.status(of: file, in: inner), status.kind == .file
          else { continue }
          payloads.add(file.text, byteCount: status.byteCount)
        }
      }
    } catch {
      throw BackupArchiveError(.unreadable, error.text)
    }
    return payloads
  }
}

extension FileSystem.Name {
  /// For comparison only: bytes that are not UTF-8 are replaced.
  fileprivate var text: String { String(decoding: dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) }
}
