package import KeyhaulKit

/// The result of `seal`, or of its dry run (`seal-result/1`).
package struct SealDocument {
  package let json: JSONValue

  /// Creates the document of a seal.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - name: The path of the backup, as the user typed it.
  ///   - fileCount: The number of files that the seal covers; `nil` if there is no seal yet.
  ///   - isWritten: Whether this call wrote the seal.
  ///   - isDryRun: Whether the user asked for a dry run.
  package init(of archive: BackupArchive, named name: String, fileCount: Int?, isWritten: Bool, isDryRun: Bool) {
    json = [
      "format": "seal-result/1", "archive": .string(name), "digest": .string(archive.digest),
      "keyed": .boolean(archive.usesKeyedSeal), "files": fileCount.map { .count($0) } ?? .null,
      "written": .boolean(isWritten), "dry_run": .boolean(isDryRun),
    ]
  }
}
