package import Basics
package import SystemPackage

extension BackupInstaller {
  /// Writes a temporary file, checks and syncs it, and renames it.
  package func placeFile(
    _ backup: OutgoingBackup, at path: String, format: ContainerFormat, replace: Bool,
    keeping access: PreservedAccess = .none
  ) throws(KeyhaulError) -> InstalledBackup {
    try placeFile(
      at: path, byteCount: backup.byteCount, replace: replace, keeping: access, check: backup.check
    ) { (descriptor) throws(KeyhaulError) in try pack(backup, as: format, into: descriptor) }
  }

  /// Places a file.
  ///
  /// - Parameters:
  ///   - access: The owner and permissions to keep from the replaced file.
  ///   - check: Checks the finished file by its temporary path.
  ///   - fill: Writes the content and returns its size.
  package func placeFile(
    at path: String, byteCount: Int64, replace: Bool, keeping access: PreservedAccess = .none,
    check: (String) throws(KeyhaulError) -> Void = { _ in },
    fill: (FileDescriptor) throws(KeyhaulError) -> Int64
  ) throws(KeyhaulError) -> InstalledBackup {
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.occupied, "\(quoted(path)) is not a valid file name")
    }
    var replacement = FileReplacement(destination, system)
    replacement.target = replace ? .file : .nothing
    replacement.preservedAccess = access
    do throws(KeyhaulError) {
      let written = try replacement.write(
        explaining: { explain($0, at: destination) },
        check: { (path) throws(KeyhaulError) in try check(path) },
        fill: fill)
      return InstalledBackup(
        path: path, byteCount: written.byteCount, isDurable: written.nameFailure == nil, leftover: nil)
    } catch {
      throw explain(error, path: path, needs: byteCount)
    }
  }

  /// Places a new file with the given content.
  package func placeNewFile(at path: String, _ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    _ = try placeFile(at: path, byteCount: Int64(bytes.count), replace: false) { (file) throws(KeyhaulError) in
      try systemCall { () throws(Errno) in try system.writeAll(bytes, to: file) }
      return Int64(bytes.count)
    }
  }

  /// Checks in advance whether a file can be placed.
  func requireFile(at path: String, replace: Bool) throws(KeyhaulError) {
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.occupied, "\(quoted(path)) is not a valid file name")
    }
    let parent = try openDirectory(destination.parent)
    let status = try systemCall { () throws(Errno) in try system.status(of: destination.name.systemName, in: parent) }
    guard let kind = status?.kind, kind != .file || !replace else { return }
    throw explain(.occupied(kind), at: destination)
  }

  private func explain(_ refusal: FileReplacement.Refusal, at destination: DestinationPath) -> KeyhaulError {
    switch refusal {
    case .system(let reason): .writing(reason)
    case .occupied(.file): KeyhaulError(.occupied, "\(quoted(destination.name)) already exists")
    case .occupied(.directory): KeyhaulError(.occupied, "\(quoted(destination.name)) is a folder")
    case .occupied(.link), .occupied(.pipe), .occupied(.other):
      KeyhaulError(.occupied, "\(quoted(destination.name)) is a link or a device, not a file")
    }
  }
}
