import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Puts a backup where it should go: whole, or not at all.
package struct BackupPlacement: Sendable {
  let system: FileSystem

  package init(system: FileSystem = .real) { self.system = system }

  /// What was written.
  package struct Placed: Sendable, Equatable {
    /// Where the backup now stands; `nil` for a stream.
    package let path: String?
    /// As stored; for a folder the sum of its files.
    package let byteCount: Int64
    /// Whether the disk confirmed that it keeps the backup's name too.
    package let isDurable: Bool
    /// A replaced backup that could not be removed, by its path.
    package let leftover: String?
  }

  package func place(
    _ backup: StoredBackup, at destination: ArchiveDestination, replace: Bool
  ) throws(BackupArchiveError) -> Placed {
    try place(backup.outgoing, at: destination, replace: replace)
  }

  func place(
    _ backup: OutgoingBackup, at destination: ArchiveDestination, replace: Bool
  ) throws(BackupArchiveError) -> Placed {
    switch destination {
    case .folder(let path): return try placeFolder(backup, at: path, replace: replace)
    case .file(let path, let format): return try placeFile(backup, at: path, format: format, replace: replace)
    case .stream(let descriptor):
      do throws(WriteFailure) {
        let count = try pack(backup, as: .tar, into: descriptor)
        return Placed(path: nil, byteCount: count, isDurable: false, leftover: nil)
      } catch {
        throw explain(error, path: "the stream", needs: backup.byteCount)
      }
    }
  }

  /// Writes a container's bytes; returns how many.
  func pack(
    _ backup: OutgoingBackup, as format: ContainerFormat, into descriptor: Int32
  ) throws(WriteFailure) -> Int64 {
    let sink = LibArchiveWriter.Sink(descriptor: descriptor, system: system)
    let writer = try LibArchiveWriter(format, to: sink)
    try backup.send(ContainerSink(writer, folderName: backup.folderName))
    try writer.finish()
    return sink.byteCount
  }

  func explain(_ failure: WriteFailure, path: String, needs byteCount: Int64) -> BackupArchiveError {
    switch failure {
    case .library(let text): BackupArchiveError(.unwritable, "\(quotedPath(path)): \(text)")
    case .occupied(let text): BackupArchiveError(.occupied, text)
    case .source(let error): error
    case .system(let failure): explain(failure, path: path, needs: byteCount)
    }
  }

  func explain(_ failure: SystemFailure, path: String, needs byteCount: Int64) -> BackupArchiveError {
    switch failure.number {
    case ENOSPC:
      BackupArchiveError(.noSpace, "no space left on \(quotedPath(path)) (needs \(Amounts.grouped(byteCount)) bytes)")
    case EDQUOT:
      BackupArchiveError(
        .noSpace, "the quota is used up on \(quotedPath(path)) (needs \(Amounts.grouped(byteCount)) bytes)")
    case ENOENT: BackupArchiveError(.notFound, "\(quotedPath(path)): \(failure.text)")
    default: BackupArchiveError(.unwritable, "\(quotedPath(path)): \(failure.text)")
    }
  }

  /// A path that the user typed stands as it is, unless that would garble the terminal.
  private func quotedPath(_ path: String) -> String {
    let text = quoted(path)
    return text == "\"\(path)\"" ? path : text
  }
}

/// A path cut into the folder that holds its last part, and that part.
struct PlacePath {
  let parent: String
  let name: String

  /// - Returns: `nil` where the path has no last part of its own: `/`, `.`, `..`, or nothing.
  init?(_ path: String) {
    var rest = Substring(path)
    while rest.count > 1, rest.hasSuffix("/") { rest = rest.dropLast() }
    let cut = rest.lastIndex(of: "/")
    name = String(cut.map { rest[rest.index(after: $0)...] } ?? rest)
    parent = cut.map { $0 == rest.startIndex ? "/" : String(rest[..<$0]) } ?? "."
    if name.isEmpty || name == "." || name == ".." { return nil }
  }

  /// A name beside the target that no one else uses: hidden, and random so that nothing can lie in wait there.
  func sibling(_ suffix: String) -> String {
    let random = String(UInt32.random(in: .min ... .max), radix: 16)
    return ".\(stem).\(random).\(suffix)"
  }

  private var stem: String {
    name.utf8.count > 200 ? String(name.unicodeScalars.prefix(50).map(Character.init)) : name
  }

  /// Whether a name is one that `sibling` makes for what is being written. A replaced backup's name never is.
  func isTemporarySibling(_ candidate: String) -> Bool { isSibling(candidate, "tmp") }

  /// Whether a name is one that `sibling` makes, of either kind.
  func isSibling(_ candidate: String) -> Bool { isTemporarySibling(candidate) || isSibling(candidate, "old") }

  private func isSibling(_ candidate: String, _ suffix: String) -> Bool {
    let prefix = ".\(stem)."
    guard candidate.hasPrefix(prefix), candidate.hasSuffix("." + suffix) else { return false }
    let digits = candidate.dropFirst(prefix.count).dropLast(suffix.count + 1)
    return (1...8).contains(digits.count) && digits.allSatisfy { $0.isASCII && $0.isHexDigit }
  }

  /// Whether a file in a backup's folder is what writing its manifest was ended at.
  static func isTemporaryManifest(_ name: String) -> Bool {
    PlacePath(StoredPart.manifest.path)?.isTemporarySibling(name) == true
  }
}
