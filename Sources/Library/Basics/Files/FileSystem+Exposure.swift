package import SystemPackage

/// How another user could change the file that a path leads to.
package enum FileExposure: Sendable, Equatable {
  /// The file, or a folder or link on the way to it, belongs to another user.
  case otherOwner(path: String)
  /// The file's group or everybody may write it.
  case writableFile(path: String)
  /// The group or everybody may write a folder on the way to the file, and so replace what is in it.
  case writableFolder(path: String)
}

extension FileSystem {
  /// Finds a way in which another user than this one and root could change the file that a path leads to.
  ///
  /// Looks at the file and at every folder and link on the way to it from the root, as OpenSSH does for a file of keys
  /// (`auth.c`, `auth_secure_path`). A folder that everybody may write is safe with the sticky bit, as `/tmp` is: there only
  /// the owner of an entry may replace it (unlink(2), `EPERM`), and every entry on the way is checked.
  ///
  /// - Returns: The first way that is found from the root; `nil` if there is none.
  /// - Throws: `.noSuchFileOrDirectory` if there is no such file, or why a part of the path cannot be looked at.
  package func exposure(of path: String) throws(Errno) -> FileExposure? {
    let start = path.hasPrefix("/") ? path : try SystemCalls.workingDirectoryPath() + "/" + path
    var names = Self.names(ofPath: start)
    var folder = ""
    var linkCount = 0
    if let root = try exposure(at: "/")?.exposure { return root }
    while let name = names.popLast() {
      if name == "." { continue }
      if name == ".." {
        folder = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? ""
        continue
      }
      let place = "\(folder)/\(name)"
      guard let found = try exposure(at: place) else {
        throw .noSuchFileOrDirectory
      }
      if let exposure = found.exposure { return exposure }
      guard found.status.kind == .link else {
        folder = place
        continue
      }
      linkCount += 1
      guard linkCount <= Self.maximumLinkCount else { throw .tooManySymbolicLinkLevels }
      guard let target = try linkTarget(of: place) else { throw .noSuchFileOrDirectory }
      if target.hasPrefix("/") { folder = "" }
      names += Self.names(ofPath: target)
    }
    return nil
  }

  /// As many as Linux follows in one path (path_resolution(7)).
  private static let maximumLinkCount = 40

  /// The last name first.
  private static func names(ofPath path: String) -> [String] { path.split(separator: "/").reversed().map(String.init) }

  private func exposure(at place: String) throws(Errno) -> (status: FileStatus, exposure: FileExposure?)? {
    guard let status = try status(of: place) else { return nil }
    guard status.isOwn || status.owner == 0 else { return (status, .otherOwner(path: place)) }
    // The write bits of group and others, and the sticky bit, as POSIX numbers them. A link's own bits mean nothing.
    guard status.kind != .link, status.permissions & 0o022 != 0 else { return (status, nil) }
    if status.kind != .directory { return (status, .writableFile(path: place)) }
    return (status, status.permissions & 0o1000 != 0 ? nil : .writableFolder(path: place))
  }

  private func linkTarget(of path: String) throws(Errno) -> String? {
    var buffer = [CChar](repeating: 0, count: 4_096)
    let count = try perform(.read) { _ in
      try buffer.withUnsafeMutableBufferPointer {
        try SystemCalls.linkTarget(path, in: SystemCalls.workingDirectory, into: $0)
      }
    }
    return (buffer.prefix(count) + [0]).map { $0 }.validText
  }
}
