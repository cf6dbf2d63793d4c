package import KeyhaulKit

/// The result of `convert`, or of its dry run (`convert-result/1`).
package struct ConversionDocument {
  private let source: String
  private let digest: String
  private let archive: String
  private let copy: RewrittenBackup?
  private let isDryRun: Bool

  /// Creates the document of a conversion.
  ///
  /// - Parameters:
  ///   - source: The path of the backup, as the user typed it.
  ///   - digest: The digest of the backup.
  ///   - archive: The path of the copy, as the user typed it.
  ///   - copy: The copy; `nil` if nothing was written.
  ///   - isDryRun: Whether the user asked for a dry run.
  package init(of source: String, digest: String, to archive: String, copy: RewrittenBackup?, isDryRun: Bool) {
    self.source = source
    self.digest = digest
    self.archive = archive
    self.copy = copy
    self.isDryRun = isDryRun
  }

  /// Returns the document of a packed or unpacked copy.
  ///
  /// - Parameter isWritten: Whether this call wrote the copy.
  package func json(isWritten: Bool) -> JSONValue { document([("written", .boolean(isWritten))]) }

  /// Returns the document of a decrypted copy.
  ///
  /// - Parameters:
  ///   - decryptedBackup: The copy; `nil` if nothing was written.
  ///   - differingFiles: The files that do not match their digest, in the order of the manifest.
  ///   - itemsPath: The path of the file with the items in plain text; `nil` if no such file was written.
  package func json(
    decrypting decryptedBackup: DecryptedBackup?, differingFiles: [ListedFile], itemsPath: String?
  ) -> JSONValue {
    let faults = (decryptedBackup?.faults ?? []).map { fault -> JSONValue in
      [
        "file_id": .string(fault.fileIdentifier), "fault": .string(fault.error.code.rawValue),
        "reason": .string(fault.error.reason),
      ]
    }
    let files = differingFiles.map { file -> JSONValue in
      ["file_id": .string(file.fileIdentifier), "domain": .text(file.domain), "path": .text(file.relativePath)]
    }
    return document([
      ("decrypted", true), ("faults", .array(faults)), ("differing", .array(files)), ("items", .text(itemsPath)),
    ])
  }

  private func document(_ members: [(String, JSONValue)]) -> JSONValue {
    let document: JSONValue = [
      "format": "convert-result/1", "source": .string(source), "archive": .text(copy?.path ?? archive),
      "digest": .string(digest), "files": copy.map { .count($0.fileCount) } ?? .null,
      "bytes": copy.map { .integer($0.byteCount) } ?? .null,
      "foreign": .array((copy?.unrelatedFiles ?? []).map { .string($0) }),
    ]
    return document.adding(members + [("dry_run", .boolean(isDryRun))])
  }
}
