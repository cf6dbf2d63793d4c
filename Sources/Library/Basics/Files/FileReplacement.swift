package import SystemPackage

/// The owner and permissions that a new file keeps from the file it replaces.
package enum KeptAccess: Sendable {
  /// Neither. Only the file's creator has access.
  case none
  /// The owner and group, with access for the owner only: for a file with more unencrypted content than the old one.
  case owner
  /// The owner, the group, and the access of other users.
  case all
}

/// One file that takes its place as a whole: written beside it, synced, renamed, the directory's names synced. Killed
/// at any moment, the old or the new one stands.
package struct FileReplacement: Sendable {
  /// What the new file may take the place of.
  package enum Target: Sendable {
    case nothing
    case file
    /// Whatever has the name, as `rename` does it.
    case anything
  }

  /// Why it was not written.
  package enum Refusal: Error {
    case system(Errno)
    /// Something stands there that may not go.
    case occupied(FileStatus.Kind)
  }

  package struct Written: Sendable {
    package let byteCount: Int64
    /// Why the disk did not confirm that it keeps the new name too; the new file stands all the same.
    package let nameFailure: Errno?
  }

  package var target = Target.file
  /// The owner and permissions that the new file keeps from the replaced file.
  package var keptAccess = KeptAccess.none
  /// A name of its own for what is being written, in the place of a random one. What has it goes first.
  package var temporaryName: String?
  private let system: FileSystem
  private let place: PlacePath

  package init(_ place: PlacePath, _ system: FileSystem) {
    self.place = place
    self.system = system
  }

  /// - Parameters:
  ///   - explain: Turns what is refused into an error of the caller's.
  ///   - check: Called with the finished file's path, before it gets its name: what it throws leaves none.
  ///   - fill: Writes the bytes; returns how many.
  package func write<Failure: Error>(
    explaining explain: (Refusal) -> Failure, check: (String) throws(Failure) -> Void = { (_) throws(Failure) in },
    fill: (FileDescriptor) throws(Failure) -> Int64
  ) throws(Failure) -> Written {
    let parent = try calling(explain) { () throws(Errno) in try system.openDirectory(place.parent) }
    let replaced = try standing(in: parent, explain)
    if temporaryName == nil { system.sweepLeftovers(of: place, .file, in: parent) }
    let temporary = temporaryName ?? place.sibling("tmp")
    do throws(Failure) {
      let file = try make(temporary, in: parent, explain)
      // Locked until it has its name; otherwise another process would remove it as a leftover.
      let claimed = try calling(explain) { () throws(Errno) in try system.openForReading(temporary, in: parent) }
      _ = system.claim(claimed)
      let count = try fill(file.raw)
      do throws(Errno) {
        if let replaced { try system.keepAccess(of: replaced, for: file, keptAccess) }
        try system.seal(file, byteCount: count)
      } catch {
        throw explain(.system(error))
      }
      try check("\(place.parent)/\(temporary)")
      try install(temporary, in: parent, explain)
      system.unclaim(claimed)
      return Written(byteCount: count, nameFailure: nameFailure(of: parent))
    } catch {
      system.discardTree(temporary, in: parent)
      throw error
    }
  }

  private func install<Failure: Error>(
    _ temporary: String, in parent: borrowing Descriptor, _ explain: (Refusal) -> Failure
  ) throws(Failure) {
    do throws(Errno) {
      switch target {
      case .nothing: try system.renameToNew(temporary, place.name, in: parent)
      case .file, .anything: try system.rename(temporary, to: place.name, in: parent)
      }
    } catch {
      // Another process has created the file since the check.
      throw explain(target == .nothing && error == .fileExists ? .occupied(.file) : .system(error))
    }
  }

  /// The new file has its name by now. That the name is on the disk as well can only be asked for.
  private func nameFailure(of parent: borrowing Descriptor) -> Errno? {
    do throws(Errno) {
      try system.syncDirectory(parent)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the status of the file to be replaced; `nil` if there is no such file.
  private func standing<Failure: Error>(
    in parent: borrowing Descriptor, _ explain: (Refusal) -> Failure
  ) throws(Failure) -> FileStatus? {
    if target == .anything { return nil }
    let status = try calling(explain) { () throws(Errno) in
      try system.status(of: place.name.systemName, in: parent)
    }
    guard let status else { return nil }
    guard status.kind == .file, target == .file else { throw explain(.occupied(status.kind)) }
    return status
  }

  private func make<Failure: Error>(
    _ name: String, in parent: borrowing Descriptor, _ explain: (Refusal) -> Failure
  ) throws(Failure) -> Descriptor {
    try calling(explain) { () throws(Errno) in
      temporaryName == nil ? try system.createFile(name, in: parent) : try system.createFileAnew(name, in: parent)
    }
  }

  private func calling<Value: ~Copyable, Failure: Error>(
    _ explain: (Refusal) -> Failure, _ body: () throws(Errno) -> Value
  ) throws(Failure) -> Value {
    do throws(Errno) { return try body() } catch { throw explain(.system(error)) }
  }
}

extension FileSystem {
  /// Makes a file with these bytes, synced, for its owner alone whatever the process's umask is. A file of this name that
  /// is there already is made again.
  package func createFile(_ name: String, in parent: borrowing Descriptor, bytes: [UInt8]) throws(Errno) {
    let file = try createFileAnew(name, in: parent)
    try writeAll(bytes, to: file.raw)
    try seal(file, byteCount: Int64(bytes.count))
  }

  fileprivate func createFileAnew(_ name: String, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    let file = try creatingAnew(name, in: parent)
    try setPermissions(0o600, of: file)
    return file
  }

  private func creatingAnew(_ name: String, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try createFile(name, in: parent)
    } catch {
      guard error == .fileExists else { throw error }
    }
    try remove(name.systemName, in: parent, isDirectory: false)
    return try createFile(name, in: parent)
  }
}
