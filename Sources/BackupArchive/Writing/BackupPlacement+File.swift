#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension BackupPlacement {
  /// Writes one file beside its target, checks and syncs it, and renames it there.
  func placeFile(
    _ backup: OutgoingBackup, at path: String, format: ContainerFormat, replace: Bool, keepsAccess: Bool = false
  ) throws(BackupArchiveError) -> Placed {
    try placeFile(
      at: path, byteCount: backup.byteCount, replace: replace, keepsAccess: keepsAccess, check: backup.check
    ) { (descriptor) throws(WriteFailure) in try pack(backup, as: format, into: descriptor) }
  }

  /// - Parameters:
  ///   - keepsAccess: Whether it stays as open to others as the file that it replaces, and not its owner's alone: for
  ///     what says no more in clear than that one did.
  ///   - check: Looks at the finished file, by its path, before it gets its name.
  ///   - fill: Writes the bytes; returns how many.
  func placeFile(
    at path: String, byteCount: Int64, replace: Bool, keepsAccess: Bool = false,
    check: (String) throws(BackupArchiveError) -> Void = { _ in },
    fill: (Int32) throws(WriteFailure) -> Int64
  ) throws(BackupArchiveError) -> Placed {
    guard let place = PlacePath(path) else {
      throw BackupArchiveError(.occupied, "\(quoted(path)) cannot be the name of a file")
    }
    do throws(WriteFailure) {
      let written = try write(to: place, replace: replace, keepsAccess: keepsAccess, check: check, fill: fill)
      return Placed(path: path, byteCount: written.byteCount, isDurable: written.isDurable, leftover: nil)
    } catch {
      throw explain(error, path: path, needs: byteCount)
    }
  }

  /// Writes a file that is no backup, in the same way: whole under its name, or not there at all.
  ///
  /// - Parameters:
  ///   - explain: The error for what the system refused, by its number (`errno`).
  ///   - beforeNaming: Called when the bytes are on the disk and the file has not got its name: what it throws leaves none.
  ///   - fill: Writes the bytes to a descriptor; returns how many.
  package func placeFile<Failure: Error>(
    at path: String, explaining explain: (_ number: Int32) -> Failure,
    beforeNaming: () throws(Failure) -> Void = { () throws(Failure) in }, fill: (Int32) throws(Failure) -> Int64
  ) throws(Failure) {
    guard !path.hasSuffix("/"), let place = PlacePath(path) else { throw explain(EISDIR) }
    var failure: Failure?
    do throws(WriteFailure) {
      func check(_ path: String) throws(BackupArchiveError) {
        do throws(Failure) {
          try beforeNaming()
        } catch {
          failure = error
          throw BackupArchiveError(.interrupted, "it got no name")
        }
      }
      _ = try write(to: place, replace: true, check: check) { (descriptor) throws(WriteFailure) in
        do throws(Failure) {
          return try fill(descriptor)
        } catch {
          failure = error
          throw .library("it was not filled")
        }
      }
    } catch {
      if let failure { throw failure }
      switch error {
      case .system(let refused): throw explain(refused.number)
      case .occupied: throw explain(EEXIST)
      case .library, .source: throw explain(EIO)
      }
    }
  }

  private func write(
    to place: PlacePath, replace: Bool, keepsAccess: Bool = false,
    check: (String) throws(BackupArchiveError) -> Void = { _ in },
    fill: (Int32) throws(WriteFailure) -> Int64
  ) throws(WriteFailure) -> (byteCount: Int64, isDurable: Bool) {
    let parent = try opening(place.parent)
    let replaced = try status(of: place, in: parent, replace: replace)
    sweepLeftovers(of: place, .file, in: parent)
    let temporary = place.sibling("tmp")
    do throws(WriteFailure) {
      let count = try create(temporary, in: parent, like: keepsAccess ? replaced : nil, fill: fill)
      try obtaining { () throws(BackupArchiveError) in try check("\(place.parent)/\(temporary)") }
      try systemCall { () throws(SystemFailure) in try system.rename(temporary, to: place.name, in: parent) }
      return (count, keepsNames(of: parent))
    } catch {
      discardTree(temporary, in: parent)
      throw error
    }
  }

  /// Of the file that is replaced; `nil` where nothing stands there.
  private func status(
    of place: PlacePath, in parent: borrowing Descriptor, replace: Bool
  ) throws(WriteFailure) -> FileStatus? {
    let status = try systemCall { () throws(SystemFailure) in
      try system.status(of: place.name.systemName, in: parent)
    }
    switch status?.kind {
    case nil: return nil
    case .file where replace: return status
    case .file: throw .occupied("\(quoted(place.name)) is there already")
    case .directory: throw .occupied("\(quoted(place.name)) is a folder")
    case .other: throw .occupied("\(quoted(place.name)) is a link or a device, not a file")
    }
  }

  private func create(
    _ name: String, in parent: borrowing Descriptor, like replaced: FileStatus?,
    fill: (Int32) throws(WriteFailure) -> Int64
  ) throws(WriteFailure) -> Int64 {
    let file = try systemCall { () throws(SystemFailure) in try system.createFile(name, in: parent) }
    _ = system.claim(file)
    let count = try fill(file.raw)
    do throws(SystemFailure) {
      try keepAccess(of: replaced, for: file)
      try system.seal(file, byteCount: count)
    } catch {
      throw .system(error)
    }
    return count
  }

  private func keepAccess(of replaced: FileStatus?, for file: borrowing Descriptor) throws(SystemFailure) {
    guard let replaced else { return }
    let made = try system.status(of: file.raw)
    if (made.owner, made.group) != (replaced.owner, replaced.group) { system.giveAway(file, to: replaced) }
    // A file system without permissions has the same for every file, and refuses others.
    if made.permissions != replaced.permissions { try system.setPermissions(replaced.permissions, of: file) }
  }

  func opening(_ parent: String) throws(WriteFailure) -> Descriptor {
    try systemCall { () throws(SystemFailure) in try system.openDirectory(parent) }
  }

  /// The new backup stands by now. That its name is on the disk as well can only be asked for.
  func keepsNames(of parent: borrowing Descriptor) -> Bool {
    do throws(SystemFailure) {
      try system.syncDirectory(parent)
      return true
    } catch {
      return false
    }
  }

  func systemCall<Result: ~Copyable>(_ body: () throws(SystemFailure) -> Result) throws(WriteFailure) -> Result {
    do throws(SystemFailure) {
      return try body()
    } catch {
      throw .system(error)
    }
  }

  /// Removes what runs that were killed left beside this target: ours by name, kind and owner. What another run still
  /// writes is claimed, as its end alone ends the claim, and stays.
  func sweepLeftovers(of place: PlacePath, _ kind: FileStatus.Kind, in parent: borrowing Descriptor) {
    guard let names = try? system.names(in: parent) else { return }
    for bytes in names {
      let name = String(decoding: bytes.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
      guard place.isTemporarySibling(name), let leftover = try? system.openForReading(name, in: parent),
        let status = try? system.status(of: leftover.raw), status.kind == kind, status.isOwn,
        system.claim(leftover), kind != .directory || holdsNothingElse(bytes, in: parent)
      else { continue }
      try? system.removeTree(bytes, in: parent)
    }
  }

  /// Sweeps what stands beside a backup's folder, of which only a file is written.
  func sweepLeftovers(besideFolder path: String) {
    guard let place = PlacePath(path), let parent = try? system.openDirectory(place.parent) else { return }
    sweepLeftovers(of: place, .directory, in: parent)
  }

  /// Whether a leftover folder has only files of a backup: somebody may have put another one into it.
  private func holdsNothingElse(_ name: FileSystem.Name, in parent: borrowing Descriptor) -> Bool {
    do throws(SystemFailure) {
      return try system.foreignFiles(in: try system.openDirectory(name, in: parent), atMost: 1).isEmpty
    } catch {
      return false
    }
  }

  /// Removes what a failed or replaced write left; a second time where one call failed in between.
  ///
  /// - Returns: Whether nothing is left.
  @discardableResult
  func discardTree(_ name: String, in parent: borrowing Descriptor) -> Bool {
    for _ in 0..<2 {
      do throws(SystemFailure) {
        try system.removeTree(name.systemName, in: parent)
        return true
      } catch {
        continue
      }
    }
    return false
  }
}
