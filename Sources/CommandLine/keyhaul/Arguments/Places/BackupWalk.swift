import KeyhaulKit
import SystemPackage

/// The backups in a folder and in the folders in it, in the order of their names: folders and one file each, mixed.
///
/// No link is followed, so that no way leads in a circle. Only if there is no backup otherwise, links to backups and to
/// folders right in which backups are stand for them: a backup on another drive is often reached so. A backup is not looked
/// into. What is held are the names of the folders that are open, whatever there are in all.
final class BackupFinder {
  /// How deep folders are looked into.
  static let maximumDepth = 64
  /// The most names that are looked at.
  static let maximumNameCount = 200_000

  /// Endings of backups in one file; one of another name is known by its first bytes.
  static let endings = ContainerFormat.allCases.flatMap(\.endings) + [".backup"]
  /// Where a tar says that it is one, in bytes from its start, and what it says. Source: POSIX, pax, "ustar Interchange
  /// Format".
  private static let tarMark = (offset: 257, text: Array("ustar".utf8))

  private struct Level {
    let path: String
    /// The last one is next.
    var names: [String]
  }

  private let system = FileSystem.real
  private var levels: [Level] = []
  /// The folder that was named.
  private let folder: String
  /// The folders, and backups, that are still to be looked at; the last one is next.
  private var roots: [String] = []
  private var remainingNameCount: Int
  /// Where the folder that was named could not be read.
  private var first: BackupPlace?
  private(set) var passedOver = PassedOver()
  /// The links so far, until a backup is found without one.
  private var links: [String] = []
  /// Links that are held, at most.
  private static let maximumLinkCount = 1_000
  private var isFoundWithoutLink = false
  /// The backups that links lead to; the last one is next.
  private var linked: [BackupPlace] = []

  /// - Parameters:
  ///   - path: A folder. In a user's folder, and on a macOS or Windows volume, only the places of backups are looked at.
  ///   - limit: The most names that are looked at.
  init(_ path: String, limit: Int = BackupFinder.maximumNameCount) {
    folder = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    remainingNameCount = limit
    roots = KnownBackupFolders.below(folder).reversed()
    if roots.isEmpty { first = descend(into: folder) }
  }

  /// Whether a directory is, or was, a backup: by a file that no other has.
  static func isBackup(_ path: String) -> Bool {
    func has(_ name: String) -> Bool { ((try? FileSystem.real.status(of: "\(path)/\(name)")) ?? nil) != nil }
    return ["Manifest.plist", "Manifest.db", "Manifest.mbdb"].contains(where: has)
      || (has("Info.plist") && has("Status.plist"))
  }

  /// The next backup; `nil` behind the last.
  func next() throws(CommandFailure) -> BackupPlace? {
    if let place = try nextWithoutLink() {
      if place.fault == nil { (isFoundWithoutLink, links) = (true, []) }
      return place
    }
    guard !isFoundWithoutLink else { return nil }
    while linked.isEmpty, let link = links.popLast() {
      try Interruption.check()
      linked = Self.backups(behind: link)
      if !linked.isEmpty { passedOver.follow(link) }
    }
    return linked.popLast()
  }

  /// The backup that a link leads to, or those right in the folder that it leads to; the first one is last.
  private static func backups(behind link: String) -> [BackupPlace] {
    switch PathContent(of: link) {
    case .file: isBackupFile(link) ? [BackupPlace(link)] : []
    case .directory where isBackup(link): [BackupPlace(link)]
    case .directory:
      ((try? BackupDirectory.backups(in: link)) ?? [])
        .filter { !$0.isLink && !$0.name.hasPrefix(".") }.map { BackupPlace("\(link)/\($0.name)") }.reversed()
    case .absent, .structured, .databaseDirectory, .device: []
    }
  }

  private func nextWithoutLink() throws(CommandFailure) -> BackupPlace? {
    if let place = first.take() { return place }
    while true {
      while let level = levels.indices.last {
        try Interruption.check()
        guard let name = levels[level].names.popLast() else {
          levels.removeLast()
          continue
        }
        let path = levels[level].path == "/" ? "/\(name)" : "\(levels[level].path)/\(name)"
        if let place = look(at: path, named: name) { return place }
      }
      guard let root = roots.popLast() else { return nil }
      if let place = descend(into: root) { return place }
    }
  }

  private func look(at path: String, named name: String) -> BackupPlace? {
    guard !name.hasPrefix(".") else {
      passedOver.hidden += 1
      return nil
    }
    let status: FileStatus?
    do throws(Errno) { status = try system.status(of: path) } catch { return unreadable(path, error) }
    switch status?.kind {
    case .directory:
      if Self.isBackup(path) { return BackupPlace(path) }
      guard PathContent(of: path) == .directory else {
        passedOver.keychains += 1
        return nil
      }
      return descend(into: path)
    case .file:
      if Self.isBackupFile(path) { return BackupPlace(path) }
      passedOver.files += 1
    case .link:
      passedOver.addLink(path, to: target(of: name))
      if !isFoundWithoutLink, links.count < Self.maximumLinkCount { links.append(path) }
    case .pipe, .other: passedOver.specials += 1
    // Gone since its folder was read.
    case nil: break
    }
    return nil
  }

  /// Returns the target of a link in the folder that is being read; `nil` if it cannot be read.
  private func target(of name: String) -> String? {
    guard let parent = levels.last?.path, let directory = try? system.openDirectory(parent) else { return nil }
    return try? system.linkTarget(of: name, in: directory)
  }

  private static func isBackupFile(_ path: String) -> Bool {
    let name = path.lowercased()
    if endings.contains(where: name.hasSuffix) { return true }
    let (offset, text) = tarMark
    return InputFile.start(of: path, byteCount: offset + text.count).dropFirst(offset).elementsEqual(text)
  }

  /// - Returns: The folder itself where it cannot be read, so that its row says why.
  private func descend(into path: String) -> BackupPlace? {
    guard levels.count < Self.maximumDepth else {
      return BackupPlace(
        path,
        fault: CommandFailure(
          .refused, "refused to look into \(path)", why: "it is \(Self.maximumDepth) folders deep", try: "name it"))
    }
    let all: [FileSystem.Name]
    do throws(Errno) {
      let directory = try system.openDirectory(path)
      all = try system.names(in: directory)
    } catch {
      return unreadable(path, error)
    }
    remainingNameCount -= all.count
    guard remainingNameCount >= 0 else {
      (levels, roots) = ([], [])
      return BackupPlace(
        path,
        fault: CommandFailure(
          .refused, "stopped looking in \(path)",
          why: "\(folder) has more than \(HumanReadable.grouped(Self.maximumNameCount)) files and folders",
          try: "a folder closer to the backups"))
    }
    let names = all.compactMap(\.validText)
    passedOver.unnamed += all.count - names.count
    // By their bytes, the same in every locale.
    levels.append(Level(path: path, names: names.sorted { $1.utf8.lexicographicallyPrecedes($0.utf8) }))
    return nil
  }

  private func unreadable(_ path: String, _ error: Errno) -> BackupPlace {
    BackupPlace(
      path,
      fault: CommandFailure(
        error.isNotFound ? .notFound : .failed, "could not read \(path)", why: error.reason,
        try: "check its permissions",
        of: error))
  }
}
