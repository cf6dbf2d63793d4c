import KeyhaulKit
import SystemPackage

/// Finds the backups in a folder and its subfolders, ordered by name. A backup is a folder or a file.
///
/// The search does not follow links, so that it cannot go in circles. There is one exception, because backups are often
/// linked from another drive. If no other backup is found, the search follows links to a backup, or to a folder with
/// backups directly in it.
///
/// The search does not continue inside a backup. In memory, it keeps only the names in the folders that are being read.
final class BackupFinder {
  /// The maximum depth of subfolders.
  static let maximumDepth = 64
  /// The maximum number of file and folder names in one search.
  static let maximumNameCount = 200_000

  /// The file name extensions of single-file backups. Files with other names are recognized by their first bytes.
  static let endings = ContainerFormat.allCases.flatMap(\.fileExtensions) + [".backup"]
  /// The signature in a tar header, and its offset in bytes. Source: POSIX, pax, "ustar Interchange Format".
  private static let tarSignature = (offset: 257, text: Array("ustar".utf8))

  /// A folder that is being read.
  private struct OpenFolder {
    let path: String
    /// The names that remain, in reverse order.
    var names: [String]
  }

  private let system = FileSystem.real
  /// The folder that the search was started with.
  private let folder: String
  /// The result for `folder` if it could not be read; otherwise `nil`.
  private var unreadableFolder: QueuedBackup?
  /// The folders to search after the open ones, in reverse order.
  private var remainingFolders: [String] = []
  /// The folders that are being read, from the outermost to the innermost.
  private var openFolders: [OpenFolder] = []
  private var remainingNameCount: Int
  private(set) var skipped = SkippedEntries()

  private var hasFoundBackup = false
  /// The links to follow if no other backup is found. Emptied when a backup is found without following a link.
  private var links: [String] = []
  /// The maximum number of links that are kept.
  private static let maximumLinkCount = 1_000
  /// The backups that links lead to, in reverse order.
  private var linkedBackups: [QueuedBackup] = []

  /// Starts a search.
  ///
  /// - Parameters:
  ///   - path: A folder. If it is a user's home folder, or a macOS or Windows volume, and the usual backup folders in it
  ///     contain backups, only these folders are searched.
  ///   - limit: The maximum number of file and folder names to read.
  init(_ path: String, limit: Int = BackupFinder.maximumNameCount) {
    folder = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    remainingNameCount = limit
    remainingFolders = KnownBackupFolders.below(folder).reversed()
    if remainingFolders.isEmpty { unreadableFolder = open(folder) }
  }

  /// Returns whether a folder is a backup or what remains of one, judging by files that only backups have.
  static func isBackup(_ path: String) -> Bool {
    func has(_ name: String) -> Bool { ((try? FileSystem.real.status(of: "\(path)/\(name)")) ?? nil) != nil }
    return ["Manifest.plist", "Manifest.db", "Manifest.mbdb"].contains(where: has)
      || (has("Info.plist") && has("Status.plist"))
  }

  /// Returns the next backup; `nil` after the last.
  func next() throws(CommandError) -> QueuedBackup? {
    if let queued = try nextWithoutLink() {
      if queued.fault == nil {
        hasFoundBackup = true
        links = []
      }
      return queued
    }
    guard !hasFoundBackup else { return nil }
    while linkedBackups.isEmpty, let link = links.popLast() {
      try Interruption.check()
      linkedBackups = Self.backups(atTargetOf: link)
      if !linkedBackups.isEmpty { skipped.removeLink(link) }
    }
    return linkedBackups.popLast()
  }

  /// Returns the backup that a link leads to, or the backups directly in the folder that it leads to, in reverse order.
  private static func backups(atTargetOf link: String) -> [QueuedBackup] {
    switch PathContent(of: link) {
    case .file: isBackupFile(link) ? [QueuedBackup(link)] : []
    case .directory where isBackup(link): [QueuedBackup(link)]
    case .directory:
      ((try? BackupDirectory.backups(in: link)) ?? [])
        .filter { !$0.isLink && !$0.name.hasPrefix(".") }.map { QueuedBackup("\(link)/\($0.name)") }.reversed()
    case .absent, .possibleDump, .databaseDirectory, .device: []
    }
  }

  /// Returns the next backup that is not behind a link; `nil` after the last.
  private func nextWithoutLink() throws(CommandError) -> QueuedBackup? {
    if let queued = unreadableFolder.take() { return queued }
    while true {
      while let innermost = openFolders.indices.last {
        try Interruption.check()
        guard let name = openFolders[innermost].names.popLast() else {
          openFolders.removeLast()
          continue
        }
        let parent = openFolders[innermost].path
        if let queued = examine(parent == "/" ? "/\(name)" : "\(parent)/\(name)", named: name) { return queued }
      }
      guard let folder = remainingFolders.popLast() else { return nil }
      if let queued = open(folder) { return queued }
    }
  }

  /// Returns the backup at a path, or counts the entry as skipped. A folder that is not a backup is searched next.
  private func examine(_ path: String, named name: String) -> QueuedBackup? {
    guard !name.hasPrefix(".") else {
      skipped.hiddenNameCount += 1
      return nil
    }
    let status: FileStatus?
    do throws(Errno) {
      status = try system.status(of: path)
    } catch {
      return unreadable(path, because: error)
    }
    switch status?.kind {
    case .directory:
      if Self.isBackup(path) { return QueuedBackup(path) }
      guard PathContent(of: path) == .directory else {
        skipped.keychainCount += 1
        return nil
      }
      return open(path)
    case .file:
      if Self.isBackupFile(path) { return QueuedBackup(path) }
      skipped.fileCount += 1
    case .link:
      skipped.addLink(path, to: target(of: name))
      if !hasFoundBackup, links.count < Self.maximumLinkCount { links.append(path) }
    case .pipe, .other: skipped.specialFileCount += 1
    // Deleted since its folder was read.
    case nil: break
    }
    return nil
  }

  /// Returns the target of a link in the folder that is being read; `nil` if it cannot be read.
  private func target(of name: String) -> String? {
    guard let parent = openFolders.last?.path, let directory = try? system.openDirectory(parent) else { return nil }
    return try? system.linkTarget(of: name, in: directory)
  }

  private static func isBackupFile(_ path: String) -> Bool {
    let name = path.lowercased()
    if endings.contains(where: name.hasSuffix) { return true }
    let (offset, text) = tarSignature
    return InputFile.start(of: path, byteCount: offset + text.count).dropFirst(offset).elementsEqual(text)
  }

  /// Reads the names in a folder, which is searched next.
  ///
  /// - Returns: The folder itself as a result if it cannot be read; otherwise `nil`.
  private func open(_ path: String) -> QueuedBackup? {
    guard openFolders.count < Self.maximumDepth else {
      return QueuedBackup(
        path,
        fault: CommandError(
          .refused, "refused to look into \(path)", why: "it is \(Self.maximumDepth) folders deep", try: "name it"))
    }
    let entries: [FileSystem.Name]
    do throws(Errno) {
      let directory = try system.openDirectory(path)
      entries = try system.names(in: directory)
    } catch {
      return unreadable(path, because: error)
    }
    remainingNameCount -= entries.count
    guard remainingNameCount >= 0 else {
      openFolders = []
      remainingFolders = []
      return QueuedBackup(
        path,
        fault: CommandError(
          .refused, "stopped looking in \(path)",
          why: "\(folder) has more than \(HumanReadable.grouped(Self.maximumNameCount)) files and folders",
          try: "a folder closer to the backups"))
    }
    let names = entries.compactMap(\.validText)
    skipped.invalidNameCount += entries.count - names.count
    // Sorts by bytes, so that the order is the same in every locale.
    openFolders.append(OpenFolder(path: path, names: names.sorted { $1.utf8.lexicographicallyPrecedes($0.utf8) }))
    return nil
  }

  private func unreadable(_ path: String, because error: Errno) -> QueuedBackup {
    QueuedBackup(
      path,
      fault: CommandError(
        error.isNotFound ? .notFound : .failed, "could not read \(path)", why: error.reason,
        try: "check its permissions",
        of: error))
  }
}
