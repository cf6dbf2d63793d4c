import KeyhaulKit

/// The backups that a batch command processes, one after the other: first the arguments, then the paths in the list. For
/// a folder, the queue returns the backups in it.
final class BackupQueue {
  private var arguments: ArraySlice<String>
  private let pathList: PathList?
  private var search: FolderSearch?
  /// The skipped entries of the folders that were searched completely.
  private var earlierSkipped = SkippedEntries()

  /// The search of the current folder.
  private struct FolderSearch {
    let folder: String
    let finder: BackupFinder
    var isEmpty = true
  }

  init(_ arguments: [String], pathList: PathList?) {
    self.arguments = arguments[...]
    self.pathList = pathList
  }

  /// The number of backups in a folder that is not a backup itself: none, one or several.
  enum Content: Equatable {
    /// No backups. Also for a path that is not a folder, or that is a backup itself.
    case none
    /// A single backup, at this path.
    case one(String)
    /// Several backups, or one beside a folder that cannot be read.
    case several
  }

  /// Returns whether a folder contains no, one or several backups.
  static func content(of path: String) throws(CommandError) -> Content {
    guard isFolder(path) else { return .none }
    let search = BackupFinder(path)
    var onlyPath: String?
    var hasFault = false
    while let queued = try search.next() {
      // A folder that cannot be read gets its own result, so it counts like another backup.
      guard queued.fault == nil else {
        hasFault = true
        continue
      }
      guard onlyPath == nil, !hasFault else { return .several }
      onlyPath = queued.path
    }
    guard let onlyPath else { return .none }
    return hasFault ? .several : .one(onlyPath)
  }

  /// Returns whether a path is a folder with backups, and not a backup itself.
  static func containsBackups(_ path: String) throws(CommandError) -> Bool { try content(of: path) != .none }

  private static func isFolder(_ path: String) -> Bool {
    path != "-" && PathContent(of: path) == .directory && !BackupFinder.isBackup(path)
  }

  /// Returns the next backup; `nil` after the last.
  func next() throws(CommandError) -> QueuedBackup? {
    while true {
      if let queued = try nextInFolder() { return queued }
      guard let queued = try nextArgument() else { return nil }
      guard queued.fault == nil, Self.isFolder(queued.path) else { return queued }
      search = FolderSearch(folder: queued.path, finder: BackupFinder(queued.path))
    }
  }

  private func nextInFolder() throws(CommandError) -> QueuedBackup? {
    guard let search else { return nil }
    if let queued = try search.finder.next() {
      self.search?.isEmpty = false
      return queued
    }
    earlierSkipped.add(search.finder.skipped)
    self.search = nil
    // A folder that the user named gets its own result if it has no backups.
    return search.isEmpty ? QueuedBackup(search.folder) : nil
  }

  private func nextArgument() throws(CommandError) -> QueuedBackup? {
    if let argument = arguments.popFirst() { return QueuedBackup(argument) }
    return try pathList?.next()
  }

  /// The counts of the folder entries that have been skipped until now.
  var skipped: SkippedEntries {
    var all = earlierSkipped
    if let search { all.add(search.finder.skipped) }
    return all
  }
}

/// A backup that is waiting to be processed.
struct QueuedBackup: Sendable {
  let path: String
  /// The error if the backup cannot be opened at all; otherwise `nil`.
  let fault: CommandError?

  init(_ path: String, fault: CommandError? = nil) {
    self.path = path
    self.fault = fault
  }

  /// The name in messages: the last component of the path.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}

/// The counts of folder entries that were skipped, so that nothing is omitted silently.
struct SkippedEntries: Equatable, Sendable {
  /// The number of links that were not followed.
  var linkCount = 0
  /// The number of files that are not backups, judging by their names and first bytes.
  var fileCount = 0
  /// The number of pipes, sockets and devices.
  var specialFileCount = 0
  /// The number of names that begin with a dot.
  var hiddenNameCount = 0
  /// The number of names that are not UTF-8, which no argument can express.
  var invalidNameCount = 0
  /// The number of virtual devices and other keychains.
  var keychainCount = 0

  private struct ListedLink: Equatable, Sendable {
    let path: String
    let target: String
  }

  /// The first links that were not followed.
  private var listedLinks: [ListedLink] = []
  /// The maximum number of links that are listed.
  private static let maximumListedLinkCount = 3
  /// The first links that were not followed, with their targets, as escaped text.
  var linkTargets: [String] {
    listedLinks.map { "\(UntrustedText.escaped($0.path)) leads to \(UntrustedText.escaped($0.target))" }
  }

  init() {}

  /// Adds a link that is not followed.
  mutating func addLink(_ path: String, to target: String?) {
    linkCount += 1
    guard listedLinks.count < Self.maximumListedLinkCount, let target else { return }
    listedLinks.append(ListedLink(path: path, target: target))
  }

  /// Removes a link that is followed after all.
  mutating func removeLink(_ path: String) {
    linkCount -= 1
    listedLinks.removeAll { $0.path == path }
  }

  /// Adds the counts of another folder.
  mutating func add(_ other: SkippedEntries) {
    linkCount += other.linkCount
    listedLinks += other.listedLinks.prefix(max(0, Self.maximumListedLinkCount - listedLinks.count))
    fileCount += other.fileCount
    specialFileCount += other.specialFileCount
    hiddenNameCount += other.hiddenNameCount
    invalidNameCount += other.invalidNameCount
    keychainCount += other.keychainCount
  }

  /// The counts, each with its noun for text and its name for JSON.
  var counts: [(name: String, noun: String, plural: String, count: Int)] {
    [
      ("links", "link", "links", linkCount), ("files", "other file", "other files", fileCount),
      ("special_files", "special file", "special files", specialFileCount),
      ("hidden", "hidden name", "hidden names", hiddenNameCount),
      ("names_without_utf8", "name that is not UTF-8", "names that are not UTF-8", invalidNameCount),
      ("keychains", "keychain of another kind", "keychains of another kind", keychainCount),
    ]
  }
}
