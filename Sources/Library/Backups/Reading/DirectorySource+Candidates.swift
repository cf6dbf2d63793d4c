import Basics
import KeychainFormats
import SystemPackage

/// What in a directory that is not a backup may be meant instead.
extension DirectorySource {
  /// Names that are looked at, in a directory and in each directory of it.
  private static let maximumNameCount = 200
  /// Names that are given.
  private static let maximumCandidateCount = 3

  /// Why a directory without a manifest is not a backup.
  func notABackup(_ directory: borrowing Descriptor) -> BackupArchiveError {
    let fact = "it has no \(StoredPart.manifest.path)"
    let (backups, parents, lostLinks) = candidates(in: directory)
    var hints: [String] = []
    if !backups.isEmpty { hints.append("\(Self.listed(backups)) in it may be one") }
    if !parents.isEmpty { hints.append("backups are in \(Self.listed(parents))") }
    if let link = lostLinks.first {
      hints.append("the link \(quoted(link.name)) points to \(link.target), which does not exist")
    }
    return BackupArchiveError(.notABackup, ([fact] + hints).joined(separator: "; "))
  }

  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(maximumCandidateCount).map(quoted)
    return names.count > shown.count ? shown.joined(separator: ", ") + ", ..." : Amounts.list(shown, conjunction: "or")
  }

  private typealias LostLink = (name: String, target: String)

  /// By name: what is a backup's directory or begins like a packed one, and directories of backups, such as `Backup` in
  /// `MobileSync`; also links to such directories, and links that lead nowhere. What cannot be read is not a candidate.
  private func candidates(
    in directory: borrowing Descriptor
  ) -> (backups: [String], parents: [String], lostLinks: [LostLink]) {
    var (backups, parents): ([String], [String]) = ([], [])
    var lostLinks: [LostLink] = []
    for name in names(in: directory) {
      switch kind(of: name, in: directory) {
      case .file: if isContainer(name, in: directory) { backups.append(name) }
      case .directory, .link:
        if hasManifest(name, in: directory) {
          backups.append(name)
        } else if holdsBackups(name, in: directory) {
          parents.append(name)
        } else if let target = lostTarget(of: name, in: directory) {
          lostLinks.append((name, target))
        }
      case .pipe, .other, nil: continue
      }
    }
    return (backups, parents, lostLinks)
  }

  /// Where a link leads that leads to nothing; `nil` for everything else.
  private func lostTarget(of name: String, in directory: borrowing Descriptor) -> String? {
    guard let target = try? system.linkTarget(of: name, in: directory) else { return nil }
    do throws(Errno) {
      _ = try system.openLinkedDirectory(name.systemName, in: directory)
      return nil
    } catch {
      return error.isAbsence ? quoted(target) : nil
    }
  }

  private func names(in directory: borrowing Descriptor) -> [String] {
    let all = (try? system.names(in: directory)) ?? []
    return all.prefix(Self.maximumNameCount).compactMap(\.validText).sorted()
  }

  private func kind(of name: String, in directory: borrowing Descriptor) -> FileStatus.Kind? {
    (try? system.status(of: name.systemName, in: directory))?.kind
  }

  private func isContainer(_ name: String, in directory: borrowing Descriptor) -> Bool {
    do {
      return try beginsLikeContainer(try system.openForReading(name, in: directory))
    } catch {
      return false
    }
  }

  private func beginsLikeContainer(_ file: borrowing Descriptor) throws(BackupArchiveError) -> Bool {
    _ = try ContainerFormat(try DescriptorFeed(descriptor: file.raw, system: system))
    return true
  }

  private func hasManifest(_ name: String, in directory: borrowing Descriptor) -> Bool {
    do {
      return try isBackup(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func isBackup(_ directory: borrowing Descriptor) throws(Errno) -> Bool {
    try system.status(of: StoredPart.manifest.path.systemName, in: directory)?.kind == .file
  }

  private func holdsBackups(_ name: String, in directory: borrowing Descriptor) -> Bool {
    do {
      return hasBackup(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func hasBackup(_ directory: borrowing Descriptor) -> Bool {
    for name in names(in: directory) where hasManifest(name, in: directory) { return true }
    return false
  }
}
