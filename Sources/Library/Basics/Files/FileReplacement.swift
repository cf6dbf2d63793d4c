package import SystemPackage

/// The owner and permissions that a new file keeps from the file it replaces.
package enum PreservedAccess: Sendable {
  /// Nothing. Only the new file's creator has access.
  case none
  /// The owner and group, with access for the owner only: for a file with more unencrypted content than the replaced
  /// file.
  case owner
  /// The owner, the group, and the access of other users.
  case all
}

/// Replaces a file atomically: writes a new file next to it, syncs it, renames it, and syncs the directory.
///
/// If the process is killed at any moment, either the old or the new file exists.
package struct FileReplacement: Sendable {
  /// The kind of entry that the new file may replace.
  package enum Target: Sendable {
    case nothing
    case file
    /// Any entry with the name, as `rename` allows.
    case anything
  }

  /// A reason why the file was not written.
  package enum Refusal: Error {
    case system(Errno)
    /// The name is taken by an entry that may not be replaced.
    case occupied(FileStatus.Kind)
  }

  /// The result of a successful write.
  package struct Outcome: Sendable {
    package let byteCount: Int64
    /// The reason why the disk did not confirm the new name, or `nil` if it did. The new file exists in either case.
    package let nameFailure: Errno?
  }

  package var target = Target.file
  /// The owner and permissions that the new file keeps from the replaced file.
  package var preservedAccess = PreservedAccess.none
  /// A fixed name for the temporary file, instead of a random one. An existing entry with this name is removed first.
  package var temporaryName: String?
  private let system: FileSystem
  private let destination: DestinationPath

  package init(_ destination: DestinationPath, _ system: FileSystem) {
    self.destination = destination
    self.system = system
  }

  /// Writes and installs the file.
  ///
  /// - Parameters:
  ///   - makeError: Creates the caller's error for a refusal.
  ///   - check: Called with the path of the finished file before it is renamed. If it throws, nothing is installed.
  ///   - fill: Writes the content and returns its number of bytes.
  /// - Returns: The number of bytes, and whether the disk confirmed the new name.
  /// - Throws: The error of `makeError`, `check` or `fill`; nothing has been replaced then.
  package func write<Failure: Error>(
    explaining makeError: (Refusal) -> Failure, check: (String) throws(Failure) -> Void = { (_) throws(Failure) in },
    fill: (FileDescriptor) throws(Failure) -> Int64
  ) throws(Failure) -> Outcome {
    let parent = try calling(makeError) { () throws(Errno) in try system.openDirectory(destination.parent) }
    let replaced = try existingStatus(in: parent, makeError)
    if temporaryName == nil { system.removeLeftovers(of: destination, .file, in: parent) }
    let temporary = temporaryName ?? destination.sibling("tmp")
    do throws(Failure) {
      let file = try createTemporaryFile(temporary, in: parent, makeError)
      // Without the claim, another process could remove the file as a leftover before it has its final name.
      let claimedFile = try calling(makeError) { () throws(Errno) in try system.openForReading(temporary, in: parent) }
      _ = system.claim(claimedFile)
      let count = try fill(file.raw)
      do throws(Errno) {
        if let replaced { try system.preserveAccess(of: replaced, for: file, preservedAccess) }
        try system.finalize(file, expectedByteCount: count)
      } catch {
        throw makeError(.system(error))
      }
      try check("\(destination.parent)/\(temporary)")
      try install(temporary, in: parent, makeError)
      system.unclaim(claimedFile)
      return Outcome(byteCount: count, nameFailure: nameFailure(of: parent))
    } catch {
      system.discardTree(temporary, in: parent)
      throw error
    }
  }

  private func install<Failure: Error>(
    _ temporary: String, in parent: borrowing OwnedFileDescriptor, _ makeError: (Refusal) -> Failure
  ) throws(Failure) {
    do throws(Errno) {
      switch target {
      case .nothing: try system.rename(temporary, toNew: destination.name, in: parent)
      case .file, .anything: try system.rename(temporary, to: destination.name, in: parent)
      }
    } catch {
      // Another process has created the file since the check.
      throw makeError(target == .nothing && error == .fileExists ? .occupied(.file) : .system(error))
    }
  }

  /// Returns the reason why the disk did not confirm the new name, or `nil` if it did. The name is already in effect.
  private func nameFailure(of parent: borrowing OwnedFileDescriptor) -> Errno? {
    do throws(Errno) {
      try system.syncDirectory(parent)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the status of the file to be replaced, or `nil` if there is no such file.
  private func existingStatus<Failure: Error>(
    in parent: borrowing OwnedFileDescriptor, _ makeError: (Refusal) -> Failure
  ) throws(Failure) -> FileStatus? {
    if target == .anything { return nil }
    let status = try calling(makeError) { () throws(Errno) in
      try system.status(of: destination.name.systemName, in: parent)
    }
    guard let status else { return nil }
    guard status.kind == .file, target == .file else { throw makeError(.occupied(status.kind)) }
    return status
  }

  private func createTemporaryFile<Failure: Error>(
    _ name: String, in parent: borrowing OwnedFileDescriptor, _ makeError: (Refusal) -> Failure
  ) throws(Failure) -> OwnedFileDescriptor {
    try calling(makeError) { () throws(Errno) in
      temporaryName == nil ? try system.createFile(name, in: parent) : try system.recreateFile(name, in: parent)
    }
  }

  /// Calls a closure, and converts its system error with `makeError`.
  private func calling<Value: ~Copyable, Failure: Error>(
    _ makeError: (Refusal) -> Failure, _ body: () throws(Errno) -> Value
  ) throws(Failure) -> Value {
    do throws(Errno) { return try body() } catch { throw makeError(.system(error)) }
  }
}

extension FileSystem {
  /// Creates a synced file with these bytes, accessible only to its owner regardless of the umask. Replaces an existing
  /// file.
  package func createFile(_ name: String, in parent: borrowing OwnedFileDescriptor, bytes: [UInt8]) throws(Errno) {
    let file = try recreateFile(name, in: parent)
    try writeAll(bytes, to: file.raw)
    try finalize(file, expectedByteCount: Int64(bytes.count))
  }

  fileprivate func recreateFile(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    let file = try createReplacing(name, in: parent)
    try setPermissions(0o600, of: file)
    return file
  }

  private func createReplacing(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    do throws(Errno) {
      return try createFile(name, in: parent)
    } catch {
      guard error == .fileExists else { throw error }
    }
    try remove(name.systemName, in: parent, isDirectory: false)
    return try createFile(name, in: parent)
  }
}
