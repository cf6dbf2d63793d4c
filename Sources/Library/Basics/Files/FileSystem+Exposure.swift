package import SystemPackage

/// A way in which another user could change the file at a path.
package enum FileExposure: Sendable, Equatable {
  /// The file, or a folder or link on its path, belongs to another user.
  case otherOwner(path: String)
  /// The file's group or everybody may write to it.
  case writableFile(path: String)
  /// The group or everybody may write to a folder on the path, and so replace its entries.
  case writableFolder(path: String)
}

extension FileSystem {
  /// Finds a way in which a user other than this one and root could change the file at a path.
  ///
  /// Checks the file, and every folder and link on the path from the root, as OpenSSH does for a key file (`auth.c`,
  /// `auth_secure_path`). A folder that everybody may write to, such as `/tmp`, is safe with the sticky bit. There,
  /// only the owner of an entry may replace it (unlink(2), `EPERM`), and every entry on the path is checked.
  ///
  /// - Returns: The first way found, starting at the root, or `nil` if there is none.
  /// - Throws: `.noSuchFileOrDirectory` if there is no such file; otherwise the reason why a part of the path cannot be
  ///   checked.
  package func exposure(of path: String) throws(Errno) -> FileExposure? {
    let start = path.hasPrefix("/") ? path : try SystemCalls.workingDirectoryPath() + "/" + path
    var remainingNames = Self.reversedNames(ofPath: start)
    // Without a slash at its end, and so empty for the root.
    var folder = ""
    var linkCount = 0
    if let exposure = try checkedEntry(at: "/")?.exposure { return exposure }
    while let name = remainingNames.popLast() {
      if name == "." { continue }
      if name == ".." {
        folder = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? ""
        continue
      }
      let entryPath = "\(folder)/\(name)"
      guard let entry = try checkedEntry(at: entryPath) else { throw .noSuchFileOrDirectory }
      if let exposure = entry.exposure { return exposure }
      guard entry.status.kind == .link else {
        folder = entryPath
        continue
      }
      linkCount += 1
      guard linkCount <= Self.maximumLinkCount else { throw .tooManySymbolicLinkLevels }
      guard let target = try linkTarget(of: entryPath) else { throw .noSuchFileOrDirectory }
      let isAbsolute = target.hasPrefix("/")
      if remainingNames.isEmpty, !isAbsolute, let pipe = try pipeStatus(behindLink: entryPath) {
        return pipe.belongsToTrustedUser ? nil : .otherOwner(path: entryPath)
      }
      if isAbsolute { folder = "" }
      remainingNames += Self.reversedNames(ofPath: target)
    }
    return nil
  }

  /// Returns the status of the pipe that a link leads to, or `nil` if it leads to anything else.
  ///
  /// A shell passes the output of `<(command)` as a link in /proc, whose target is not a path, such as `pipe:[42]`.
  private func pipeStatus(behindLink path: String) throws(Errno) -> FileStatus? {
    let status = try status(of: path, followsLink: true)
    return status?.kind == .pipe ? status : nil
  }

  /// The number of links that Linux follows in one path (path_resolution(7)).
  private static let maximumLinkCount = 40

  /// Returns the names in a path, the last one first.
  private static func reversedNames(ofPath path: String) -> [String] {
    path.split(separator: "/").reversed().map(String.init)
  }

  /// Returns the status of the entry at a path and whether another user could change it; `nil` if there is no entry.
  private func checkedEntry(at path: String) throws(Errno) -> (status: FileStatus, exposure: FileExposure?)? {
    guard let status = try status(of: path) else { return nil }
    guard status.belongsToTrustedUser else { return (status, .otherOwner(path: path)) }
    // The write bits of group and others, and the sticky bit, in POSIX numbering. A link's own bits have no effect.
    guard status.kind != .link, status.permissions & 0o022 != 0 else { return (status, nil) }
    if status.kind != .directory { return (status, .writableFile(path: path)) }
    return (status, status.permissions & 0o1000 != 0 ? nil : .writableFolder(path: path))
  }

  private func linkTarget(of path: String) throws(Errno) -> String? {
    // No target on Linux is longer (PATH_MAX).
    var buffer = [CChar](repeating: 0, count: 4_096)
    let count = try perform(.read) { _ in
      try buffer.withUnsafeMutableBufferPointer {
        try SystemCalls.linkTarget(path, in: SystemCalls.workingDirectory, into: $0)
      }
    }
    return (buffer.prefix(count) + [0]).map { $0 }.validText
  }
}
