import KeyhaulKit
import Reports
import SystemPackage

/// A record of a backup's files at one moment: names, sizes, permissions, inode numbers and times of change.
struct EvidenceRecord {
  /// The maximum number of entries.
  static let maximumCount = 2_000_000
  /// The maximum depth of folders.
  private static let maximumDepth = 64

  private var entries: [String: FileStatus] = [:]
  private var byteCount: Int64 = 0
  /// The first reason why the record is incomplete; `nil` if it is complete.
  private var gap: String?
  private let system = FileSystem.real

  /// Records a file, or a folder with everything in it. A link is followed only if it is the path itself. Links in folders
  /// are recorded, but not followed.
  init(of path: String) {
    let status: FileStatus
    do throws(Errno) {
      guard let current = try system.status(of: path, followsLink: true) else {
        gap = "it does not exist"
        return
      }
      status = current
    } catch {
      gap = "its status cannot be read: \(error.reason)"
      return
    }
    add(status, at: "")
    guard status.kind == .directory else { return }
    do throws(Errno) {
      try addFolder(try system.openDirectory(path), at: "", depth: 0)
    } catch {
      gap = gap ?? "the folder cannot be read: \(error.reason)"
    }
  }

  private mutating func add(_ status: FileStatus, at path: String) {
    entries[path] = status
    if status.kind == .file { byteCount &+= max(0, status.byteCount) }
  }

  private mutating func addFolder(
    _ folder: borrowing OwnedFileDescriptor, at path: String, depth: Int
  ) throws(Errno) {
    guard depth < Self.maximumDepth else {
      gap = gap ?? "folders are nested more than \(Self.maximumDepth) deep"
      return
    }
    for name in try system.names(in: folder) {
      guard entries.count < Self.maximumCount else {
        gap = gap ?? "it has more than \(HumanReadable.grouped(Self.maximumCount)) entries"
        return
      }
      guard let entryName = name.validText else {
        gap = gap ?? "a name is not UTF-8"
        continue
      }
      guard let status = try system.status(of: name, in: folder) else { continue }
      let entryPath = path.isEmpty ? entryName : "\(path)/\(entryName)"
      add(status, at: entryPath)
      guard status.kind == .directory else { continue }
      do throws(Errno) {
        try addFolder(try system.openDirectory(name, in: folder), at: entryPath, depth: depth + 1)
      } catch {
        gap = gap ?? "a folder cannot be read: \(error.reason)"
      }
    }
  }

  /// Compares the record with a later record of the same path.
  func compared(with later: EvidenceRecord) -> EvidenceComparison {
    var changedPaths = entries.filter { path, status in
      later.entries[path]?.isUnchanged(since: status) != true
    }.map(\.key)
    changedPaths += later.entries.keys.filter { entries[$0] == nil }
    let namedPaths = changedPaths.sorted().prefix(EvidenceComparison.maximumPathCount).map { $0.isEmpty ? "." : $0 }
    return EvidenceComparison(
      entryCount: entries.count, byteCount: byteCount, changedPaths: namedPaths, changedCount: changedPaths.count,
      incompletenessReason: gap ?? later.gap)
  }
}
