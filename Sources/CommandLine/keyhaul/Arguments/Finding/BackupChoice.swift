import KeyhaulKit
import Reports

/// A directory of several backups, such as `MobileSync/Backup`, and the one of them that is meant.
enum BackupChoice {
  /// The backup that a path means whose last part is not a file: in a directory of backups, the one of the device with
  /// this identifier. Parts of names mean nothing.
  ///
  /// - Returns: Its path; `nil` if the path does not lead into a directory of backups.
  /// - Throws: `.notFound` where none of them is meant, `.usage` where several are.
  static func path(
    _ argument: String, backups: (_ parent: String) -> [BackupDirectory.Entry]?
  ) throws(CommandFailure) -> String? {
    let parts = trimmed(argument).split(separator: "/", omittingEmptySubsequences: false)
    guard let choice = parts.last.map(String.init), !choice.isEmpty, ![".", ".."].contains(choice) else { return nil }
    let parent = parts.count == 1 ? "." : parts.dropLast().joined(separator: "/")
    guard let entries = backups(parent.isEmpty ? "/" : parent) else { return nil }
    let chosen: BackupDirectory.Entry?
    do throws(KeyhaulError) {
      chosen = try BackupDirectory.backup(choice, among: entries)
    } catch {
      throw .usage("\(argument) matches several backups", why: error.reason, try: "the name of one of the folders")
    }
    if let chosen { return parts.count == 1 ? chosen.name : "\(parent)/\(chosen.name)" }
    // A word alone may mean anything; the backups beside it are no answer to it.
    guard parts.count > 1 else { return nil }
    throw CommandFailure(
      .notFound, "\(argument) does not exist", why: contents(of: entries),
      try: "keyhaul inspect \(ShellQuoting.argument(parent, placeholder: "FOLDER")) lists them")
  }

  /// Returns the backup to suggest as a command's argument. A finished backup is preferred, then one whose state is
  /// unknown, then an unfinished one, then a damaged one. `ARCHIVE` if its name cannot be copied; `nil` if there are no
  /// backups.
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

extension BackupChoice {
  /// The backups in a directory that is none itself, such as `MobileSync/Backup`; `nil` for everything else.
  static func backups(in parent: String) -> [BackupDirectory.Entry]? {
    guard PathContent(of: parent) == .directory, PathContent(of: "\(parent)/Manifest.plist") == .absent else {
      return nil
    }
    let backups = (try? BackupDirectory.backups(in: parent)) ?? []
    return backups.isEmpty ? nil : backups
  }

  /// What is said where one backup is needed and a directory of several was named.
  static func several(_ backups: [BackupDirectory.Entry], in argument: String) -> CommandFailure {
    let proposal = proposal(among: backups, in: argument)
    // A list leaves hidden names out.
    let isListed = backups.contains { !$0.name.hasPrefix(".") }
    let list = isListed ? "keyhaul inspect \(ShellQuoting.argument(argument, placeholder: "FOLDER")) lists them" : nil
    let count = backups.count
    return .usage(
      "\(argument) contains "
        + (count == 1 ? "a backup, but is not a backup itself" : "\(count) backups; name one of them"),
      why: contents(of: backups), try: [proposal, list].compactMap(\.self).joined(separator: "; "))
  }
}
