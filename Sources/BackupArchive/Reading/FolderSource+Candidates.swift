import Files
import KeychainFormats
import SystemPackage

/// What in a folder that is no backup may be meant instead.
extension FolderSource {
  /// Names that are looked at, in a folder and in each folder of it.
  private static let mostNames = 200
  /// Names that are given.
  private static let mostCandidates = 3

  /// Why a folder without a manifest is no backup.
  func notABackup(_ folder: borrowing Descriptor) -> BackupArchiveError {
    let fact = "it has no \(StoredPart.manifest.path)"
    let (backups, parents) = candidates(in: folder)
    var hints: [String] = []
    if !backups.isEmpty { hints.append("in it \(Self.listed(backups)) may be one") }
    if !parents.isEmpty { hints.append("backups are in \(Self.listed(parents))") }
    return BackupArchiveError(.notABackup, ([fact] + hints).joined(separator: "; "))
  }

  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(mostCandidates).map(quoted)
    return names.count > shown.count ? shown.joined(separator: ", ") + ", ..." : Amounts.list(shown, conjunction: "or")
  }

  /// By name: what is a backup's folder or begins like a packed one, and folders of backups, such as `Backup` in
  /// `MobileSync`. Links are not followed; what cannot be read is no candidate.
  private func candidates(in folder: borrowing Descriptor) -> (backups: [String], parents: [String]) {
    var (backups, parents): ([String], [String]) = ([], [])
    for name in names(in: folder) {
      switch kind(of: name, in: folder) {
      case .file: if isContainer(name, in: folder) { backups.append(name) }
      case .directory:
        if hasManifest(name, in: folder) {
          backups.append(name)
        } else if holdsBackups(name, in: folder) {
          parents.append(name)
        }
      case .link, .pipe, .other, nil: continue
      }
    }
    return (backups, parents)
  }

  private func names(in folder: borrowing Descriptor) -> [String] {
    let all = (try? system.names(in: folder)) ?? []
    return all.prefix(Self.mostNames).compactMap(\.validText).sorted()
  }

  private func kind(of name: String, in folder: borrowing Descriptor) -> FileStatus.Kind? {
    (try? system.status(of: name.systemName, in: folder))?.kind
  }

  private func isContainer(_ name: String, in folder: borrowing Descriptor) -> Bool {
    do {
      return try beginsLikeContainer(try system.openForReading(name, in: folder))
    } catch {
      return false
    }
  }

  private func beginsLikeContainer(_ file: borrowing Descriptor) throws(BackupArchiveError) -> Bool {
    _ = try ContainerFormat(try DescriptorFeed(descriptor: file.raw, system: system))
    return true
  }

  private func hasManifest(_ name: String, in folder: borrowing Descriptor) -> Bool {
    do {
      return try isBackup(try system.openDirectory(name.systemName, in: folder))
    } catch {
      return false
    }
  }

  private func isBackup(_ folder: borrowing Descriptor) throws(Errno) -> Bool {
    try system.status(of: StoredPart.manifest.path.systemName, in: folder)?.kind == .file
  }

  private func holdsBackups(_ name: String, in folder: borrowing Descriptor) -> Bool {
    do {
      return hasBackup(try system.openDirectory(name.systemName, in: folder))
    } catch {
      return false
    }
  }

  private func hasBackup(_ folder: borrowing Descriptor) -> Bool {
    for name in names(in: folder) where hasManifest(name, in: folder) { return true }
    return false
  }
}
