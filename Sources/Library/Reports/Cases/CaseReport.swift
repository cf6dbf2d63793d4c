package import KeyhaulKit

/// A report for a case file (`case-report/1`).
///
/// It states the examined backups, the examiner, the method, the time and the findings. It also states whether the backups
/// changed during the examination, and how this was checked.
///
/// Everything about a backup except its path, size and digests comes from the backup, so an attacker may have written it.
package struct CaseReport: Sendable {
  /// The name of the case, as the examiner entered it.
  package let name: String
  /// The name of the examiner, as the examiner entered it.
  package let examiner: String
  /// The program with its version, and its commit if it is known.
  package let program: String
  /// The working directory, to which relative paths refer.
  package let folder: String
  /// The command line, without anything that may be a secret.
  package let command: [String]
  package let started: KeychainDate
  package let ended: KeychainDate
  /// The examined backups, at least one.
  package let backups: [ExaminedBackup]

  package init(
    name: String, examiner: String, program: String, folder: String, command: [String], started: KeychainDate,
    ended: KeychainDate, backups: [ExaminedBackup]
  ) {
    self.name = name
    self.examiner = examiner
    self.program = program
    self.folder = folder
    self.command = command
    self.started = started
    self.ended = ended
    self.backups = backups
  }

  /// An examined backup.
  package struct ExaminedBackup: Sendable {
    /// The path that the examiner typed, or the path of the backup in a folder.
    package let path: String
    /// The result of the command for this backup alone.
    package let result: BackupResult
    /// The exit code of the command for this backup alone.
    package let code: Int32
    /// The headline of the explanation that `explain` shows for this result.
    package let headline: String
    /// The reason for an exit code other than 0; `nil` if it is 0.
    package let reason: String?
    /// The digest of the backup's metadata files and keychain (`BackupArchive.digest`); `nil` if the backup could not be
    /// opened.
    package let digest: String?
    /// The last line of `Keyhaul.seal`, in hexadecimal; `nil` if there is no readable seal.
    package let sealCode: String?
    /// The state of the seal according to the command: "intact", "broken", "missing" or "unchecked".
    package let sealState: String?
    /// The comparison of the backup's files before and after the examination.
    package let files: EvidenceComparison
    /// The properties that the backup states about itself.
    package let claims: [(name: String, value: String)]
    package let warnings: [String]
    /// The complete JSON document of the command for this backup; `nil` if there is none.
    package let document: JSONValue?

    package init(
      path: String, result: BackupResult, code: Int32, headline: String, reason: String?, digest: String?,
      sealCode: String?, sealState: String?, files: EvidenceComparison, claims: [(name: String, value: String)],
      warnings: [String], document: JSONValue?
    ) {
      self.path = path
      self.result = result
      self.code = code
      self.headline = headline
      self.reason = reason
      self.digest = digest
      self.sealCode = sealCode
      self.sealState = sealState
      self.files = files
      self.claims = claims
      self.warnings = warnings
      self.document = document
    }
  }
}

extension CaseReport {
  /// An explanation of how a backup's digest is computed.
  package static let digestMethod =
    "The digest is the SHA-256 of one line for each of these stored files: Manifest.plist, the manifest (Manifest.db or "
    + "Manifest.mbdb), the keychain, and Manifest.db-wal and Manifest.db-journal unless they are empty. A line is the "
    + "file's path in the backup, a zero byte, its size in bytes, a zero byte, its SHA-256 in lowercase hexadecimal, and "
    + "a line feed. The lines are sorted by path."

  /// An explanation of how Keyhaul checks that the examination did not write to the backups.
  package static let changeCheckMethod =
    "Keyhaul opens backups for reading only. Before and after it read each backup, it compared the names, sizes, "
    + "permissions, inode numbers and change times of the backup's files and folders, as the file system reports them. "
    + "It did not compare access times, which reading may change, or the bytes of files that it did not read."

  /// A sentence that states whether any of the backups changed during the examination.
  package var changeSentence: String {
    let changedCount = backups.count { $0.files.changedCount > 0 }
    let uncomparedCount = backups.count { $0.files.changedCount == 0 && $0.files.incompletenessReason != nil }
    if changedCount == 0, uncomparedCount == 0 {
      return "No change was found in the files of any of the examined backups."
    }
    let unchangedCount = backups.count - changedCount - uncomparedCount
    return
      "No change was found in the files of \(HumanReadable.grouped(unchangedCount)) of "
      + "\(HumanReadable.count(backups.count, "backup")). Files changed in \(HumanReadable.grouped(changedCount)); "
      + "\(HumanReadable.grouped(uncomparedCount)) could not be compared completely."
  }

  /// The counts of the results: "12 backups examined: 9 unproven, 1 incomplete and 2 damaged."
  package var verdict: String {
    let countTexts = BackupResult.allCases.compactMap { result -> String? in
      let count = backups.count { $0.result == result }
      return count == 0 ? nil : "\(HumanReadable.grouped(count)) \(result.rawValue)"
    }
    return "\(HumanReadable.count(backups.count, "backup")) examined: \(HumanReadable.list(countTexts))."
  }

  package var json: JSONValue {
    [
      "format": "case-report/1", "case": .string(name), "examiner": .string(examiner), "program": .string(program),
      "folder": .string(folder), "command": .array(command.map { .string($0) }),
      "started": .string(Timestamp.text(of: started)),
      "ended": .string(Timestamp.text(of: ended)),
      "writing": [
        "method": .string(Self.changeCheckMethod), "unchanged": .boolean(backups.allSatisfy(\.files.isUnchanged)),
        "sentence": .string(changeSentence),
      ],
      "backups": .array(backups.map(Self.json)),
    ]
  }

  private static func json(_ backup: ExaminedBackup) -> JSONValue {
    [
      "path": .string(backup.path), "sha256": .text(backup.digest), "entries": .count(backup.files.entryCount),
      "bytes": .integer(backup.files.byteCount), "code": .integer(Int64(backup.code)),
      "result": .string(backup.result.rawValue), "reason": .text(backup.reason),
      "claims": .object(backup.claims.map { ($0.name, .string($0.value)) }),
      "warnings": .array(backup.warnings.map { .string($0) }),
      "seal": ["state": .text(backup.sealState), "code": .text(backup.sealCode)],
      "writing": [
        "unchanged": .boolean(backup.files.isUnchanged),
        "changed": .array(backup.files.changedPaths.map { .string($0) }),
        "changed_count": .count(backup.files.changedCount), "not_compared": .text(backup.files.incompletenessReason),
      ],
      "document": backup.document ?? .null,
    ]
  }
}
