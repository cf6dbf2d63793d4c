import KeyhaulKit
import Reports

/// A keychain dump of another tool, or a keychain database, that was read. Its content determines the format.
struct ResolvedDump {
  /// The name in messages: the argument as the user typed it.
  let name: String
  let path: String
  let contents: KeychainDump
  /// The SHA-256 digest of the file, or of a database file followed by its log or journal.
  let digest: [UInt8]
  /// The rows of a database; `nil` if this is a dump.
  let database: DatabaseRows?

  /// A database and its rows. Rows without a usable key stay encrypted.
  struct DatabaseRows {
    let database: KeychainDatabase
    let rows: [KeychainDatabase.DecryptedRow]
  }

  var isDatabase: Bool { database != nil }
  /// "dump" or "database".
  var noun: String { contents.format.noun }

  /// The disclaimer that every report about the dump or database contains.
  var disclaimer: DumpDisclaimer { DumpDisclaimer(contents, named: name) }

  /// The files that are read, which no output may replace.
  var files: [String] { isDatabase ? [path, path + "-wal", path + "-shm", path + "-journal"] : [path] }

  /// Reads a dump or database.
  ///
  /// - Throws: `.refused` for a file that is neither a backup nor a known dump or database, for a macOS file keychain,
  ///   and for a file over a limit.
  init(
    argument: String, path: String, _ databaseKeys: DatabaseKeyOptions?, in session: Session
  ) throws(CommandError) {
    name = argument
    self.path = path
    let start = InputFile.start(of: path, byteCount: KeychainDatabase.signatureByteCount)
    if FileKeychain.begins(with: start) { throw Self.fileKeychainError(name) }
    if KeychainDatabase.hasSignature(start) {
      let loaded = try LoadedDatabase(path, named: name, databaseKeys, in: session)
      (contents, digest) = (loaded.dump, loaded.digest)
      database = DatabaseRows(database: loaded.database, rows: loaded.rows)
      return
    }
    database = nil
    let bytes = try InputFile.read(path, atMost: KeychainDump.maximumByteCount, what: name, in: session)
    do throws(KeyhaulError) {
      contents = try session.computing { () throws(KeyhaulError) in try KeychainDump(parsing: bytes) }
    } catch {
      throw CommandError(
        CommandExitStatus(error.category), Self.message(error.code, name: name), why: error.reason, try: error.advice,
        of: error.errno)
    }
    do throws(DataProtectionError) {
      digest = try Digest.sha256(bytes)
    } catch {
      throw CommandError(error, failedAction: "cannot read \(name)")
    }
  }

  /// Returns the error for a macOS file keychain.
  private static func fileKeychainError(_ name: String) -> CommandError {
    CommandError(
      .refused, "\(name) is \(FileKeychain.phrase), which Keyhaul cannot read",
      why: "it is encrypted with its own password, like login.keychain-db; Keyhaul reads backups, dumps and "
        + "keychain-2.db",
      try: "run security dump-keychain -d on a Mac to see its items, or name a backup instead")
  }

  private static func message(_ code: KeyhaulError.Code, name: String) -> String {
    switch code {
    case .unreadableDump, .unknownDump: "\(name) is not a backup or a known keychain dump"
    case .backupKeychain: "\(name) is the encrypted keychain of a backup, not a backup"
    case .dumpOverLimit: "refused to read \(name)"
    default: "cannot open the entries of \(name)"
    }
  }

  /// The error of a command that accepts only backups.
  var notABackupError: CommandError {
    if isDatabase {
      return CommandError(
        .refused, "\(name) is a keychain database, not a backup",
        why: "it has no keybag and no app files",
        try: "use a command that accepts it: inspect, verify, export, diff, why, or plan --to DEVICE")
    }
    return CommandError(
      .refused, "\(name) is a keychain dump, not a backup",
      why: "it is read as \(contents.format.phrase): it has no keybag and no files, and nothing protects it",
      try: "use a command that accepts it: inspect, export, diff, why, or plan --to DEVICE")
  }

  /// Rejects password and key flags, which a dump or database does not need.
  func reject(_ options: BackupAccessOptions) throws(CommandError) {
    guard options.isGiven else { return }
    throw .usage(
      "\(name) needs no password and no key", why: "it is \(contents.nature)",
      try: "leave the password and key flags out")
  }

  /// Rejects `--format html`, because dumps and databases have no page.
  func rejectPage(in session: Session) throws(CommandError) {
    guard session.common.isHTML else { return }
    throw .usage(
      "--format html does not support a \(contents.format.noun)", why: "HTML pages show only backups and devices",
      try: "--format text or json")
  }

  /// Warns that the source was not encrypted, and lists what was skipped.
  func warn(in session: Session) {
    let skipped = ([disclaimer.skippedSentence].compactMap(\.self) + disclaimer.remarks).joined(separator: " ")
    session.warn(disclaimer.sentence, why: skipped.isEmpty ? nil : skipped, ignoresQuiet: true)
  }

  /// Returns the dump as one side of a comparison.
  ///
  /// - Parameter comparesWithBackup: Whether the other side is a backup. If so, items that no backup contains do not
  ///   count as differences.
  func side(comparesWithBackup: Bool) -> ComparisonSide {
    var items: [KeychainEntry] = []
    var omissions: [MigrationPlan.Decision] = []
    // Tombstones count only in a comparison with a backup, because a backup may contain tombstones.
    for entry in contents.entries where comparesWithBackup || entry.readablePart?.isTombstone != true {
      let candidate = entry.readablePart.map { item in
        ExportCandidate(
          item: item, isAccessControlled: item[.accessControl] != nil,
          isAppClip: item[.appClip]?.integerValue.map { $0 != 0 } ?? false)
      }
      if comparesWithBackup, let candidate, let reason = ExportExclusions.exclusionReason(for: candidate) {
        omissions.append(entry.omission(because: reason))
      } else {
        items.append(entry)
      }
    }
    return ComparisonSide(
      kind: .dump, name: name, argument: name, deviceName: nil, items: items, hasKeychain: true, omissions: omissions,
      keybagDamage: nil, disclaimer: disclaimer)
  }
}
