import KeyhaulKit
import Reports

/// Selects one backup in a folder of several, such as `MobileSync/Backup`.
enum BackupDirectoryResolver {
  /// Returns the backup that a path selects in a folder of backups. The path's last component must be the backup's
  /// complete name, or the identifier of the backup's device.
  ///
  /// - Returns: The path of the backup. Returns `nil` if the path does not lead into a folder of backups. A path without
  ///   a slash also gives `nil` if no backup matches.
  /// - Throws: `.notFound` if the path has a slash and no backup matches; `.usage` if several match.
  static func path(
    _ argument: String, backups: (_ parent: String) -> [BackupDirectory.Entry]?
  ) throws(CommandError) -> String? {
    let parts = trimmed(argument).split(separator: "/", omittingEmptySubsequences: false)
    guard let name = parts.last.map(String.init), !name.isEmpty, ![".", ".."].contains(name) else { return nil }
    let parent = parts.count == 1 ? "." : parts.dropLast().joined(separator: "/")
    guard let entries = backups(parent.isEmpty ? "/" : parent) else { return nil }
    let match: BackupDirectory.Entry?
    do throws(KeyhaulError) {
      match = try BackupDirectory.backup(name, among: entries)
    } catch {
      throw .usage("\(argument) matches several backups", why: error.reason, try: "the name of one of the folders")
    }
    if let match { return parts.count == 1 ? match.name : "\(parent)/\(match.name)" }
    // A single word may mean something else, so it is not an error if no backup has this name.
    guard parts.count > 1 else { return nil }
    throw CommandError(
      .notFound, "\(argument) does not exist", why: contents(of: entries),
      try: "keyhaul inspect \(ShellQuoting.argument(parent, placeholder: "FOLDER")) lists them")
  }

  /// Returns the backup to suggest as a command's argument: preferably a finished one, then one in an unknown state, an
  /// unfinished one, or a damaged one. Returns `ARCHIVE` if the path cannot be pasted into a shell, and `nil` if there
  /// are no backups.
  static func proposal(among backups: [BackupDirectory.Entry], in directory: String) -> String? {
    let order: [BackupDirectory.Entry.State?] = [.finished, nil, .unfinished, .damaged]
    let best = order.lazy.compactMap { state in backups.first { $0.state == state } }.first
    return best.map { ShellQuoting.argument("\(trimmed(directory))/\($0.name)", placeholder: "ARCHIVE") }
  }

  private static func contents(of backups: [BackupDirectory.Entry]) -> String {
    let names = backups.prefix(3).map(\.name).joined(separator: ", ")
    return "it contains \(names)\(backups.count > 3 ? ", ..." : "")"
  }

  private static func trimmed(_ path: String) -> String {
    path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
  }
}

extension BackupDirectoryResolver {
  /// Returns the backups in a folder such as `MobileSync/Backup`; `nil` if the path is a backup itself or contains no
  /// backups.
  static func backups(in parent: String) -> [BackupDirectory.Entry]? {
    guard PathContent(of: parent) == .directory, PathContent(of: "\(parent)/Manifest.plist") == .absent else {
      return nil
    }
    let backups = (try? BackupDirectory.backups(in: parent)) ?? []
    return backups.isEmpty ? nil : backups
  }

  /// Returns the error for a folder of backups that was given instead of one backup.
  static func severalBackupsError(_ backups: [BackupDirectory.Entry], in argument: String) -> CommandError {
    let proposal = proposal(among: backups, in: argument)
    // `inspect` does not list hidden names.
    let isListed = backups.contains { !$0.name.hasPrefix(".") }
    let listAdvice =
      isListed ? "keyhaul inspect \(ShellQuoting.argument(argument, placeholder: "FOLDER")) lists them" : nil
    let count = backups.count
    return .usage(
      "\(argument) contains "
        + (count == 1 ? "a backup, but is not a backup itself" : "\(count) backups; name one of them"),
      why: contents(of: backups), try: [proposal, listAdvice].compactMap(\.self).joined(separator: "; "))
  }
}
