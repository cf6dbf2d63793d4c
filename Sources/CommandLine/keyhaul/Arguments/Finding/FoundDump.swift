import KeyhaulKit
import Reports

/// Another tool's dump of a keychain, or a keychain's own database, that an argument means: read once, its form
/// recognized by its content.
struct FoundDump {
  /// As the user wrote it.
  let typed: String
  let path: String
  let dump: KeychainDump
  /// SHA-256 of the file's bytes; of a database that was read with its log or its journal, of those of both, one behind the
  /// other.
  let digest: [UInt8]
  /// The rows as they opened; `nil` of a dump.
  let database: DatabaseRows?

  /// A database's rows, and what of each opened.
  struct DatabaseRows {
    let database: KeychainDatabase
    let rows: [KeychainDatabase.DecryptedRow]
  }

  var isDatabase: Bool { database != nil }
  /// "dump" or "database".
  var noun: String { dump.format.noun }

  /// What every report says of it.
  var statement: DumpDisclaimer { DumpDisclaimer(dump, named: typed) }

  /// What is read of it, which no result may replace.
  var files: [String] { isDatabase ? [path, path + "-wal", path + "-shm", path + "-journal"] : [path] }

  /// - Throws: `.refused` for a file that is neither a backup nor a known dump nor a database, for a macOS file keychain,
  ///   and for one over a limit.
  init(
    typed: String, path: String, _ databaseKeys: DatabaseKeyOptions?, in session: Session
  ) throws(CommandFailure) {
    self.typed = typed
    self.path = path
    let start = InputFile.start(of: path, byteCount: KeychainDatabase.signatureByteCount)
    if FileKeychain.begins(with: start) { throw Self.isFileKeychain(typed) }
    if KeychainDatabase.hasSignature(start) {
      let read = try DatabaseReading(path, named: typed, databaseKeys, in: session)
      (dump, digest) = (read.dump, read.digest)
      database = DatabaseRows(database: read.database, rows: read.rows)
      return
    }
    database = nil
    let bytes = try InputFile.read(path, atMost: KeychainDump.maximumByteCount, what: typed, in: session)
    do throws(KeyhaulError) {
      dump = try session.computing { () throws(KeyhaulError) in try KeychainDump(parsing: bytes) }
    } catch {
      throw CommandFailure(
        CommandStatus(error.category), Self.message(error.code, typed), why: error.reason, try: error.advice,
        of: error.errno)
    }
    do throws(DataProtectionError) {
      digest = try Digest.sha256(bytes)
    } catch {
      throw CommandFailure(error, doing: "cannot read \(typed)")
    }
  }

  /// What is said of a keychain file of macOS.
  private static func isFileKeychain(_ name: String) -> CommandFailure {
    CommandFailure(
      .refused, "\(name) is \(FileKeychain.phrase), which Keyhaul cannot read",
      why: "it is encrypted with its own password, like login.keychain-db; Keyhaul reads backups, dumps and "
        + "keychain-2.db",
      try: "run security dump-keychain -d on a Mac to see its items, or name a backup instead")
  }

  private static func message(_ code: KeyhaulError.Code, _ name: String) -> String {
    switch code {
    case .unreadableDump, .unknownDump: "\(name) is not a backup or a known keychain dump"
    case .backupKeychain: "\(name) is the encrypted keychain of a backup, not a backup"
    case .dumpOverLimit: "refused to read \(name)"
    default: "cannot open the entries of \(name)"
    }
  }

  /// What a verb says that takes backups alone.
  var refusal: CommandFailure {
    if isDatabase {
      return CommandFailure(
        .refused, "\(typed) is a keychain database, not a backup",
        why: "it has no keybag and no app files",
        try: "use a command that accepts it: inspect, verify, export, diff, why, or plan --to DEVICE")
    }
    return CommandFailure(
      .refused, "\(typed) is a keychain dump, not a backup",
      why: "it is read as \(dump.format.phrase): it has no keybag and no files, and nothing protects it",
      try: "use a command that accepts it: inspect, export, diff, why, or plan --to DEVICE")
  }

  /// Refuses what opens a backup: a dump is in clear.
  func refuse(_ options: UnlockingOptions) throws(CommandFailure) {
    guard options.isGiven else { return }
    throw .usage(
      "\(typed) needs no password and no key", why: "it is \(dump.nature)",
      try: "leave the password and key flags out")
  }

  /// Refuses a page: none is made of a dump or a database.
  func refusePage(in session: Session) throws(CommandFailure) {
    guard session.common.isHTML else { return }
    throw .usage(
      "--format html does not support a \(dump.format.noun)", why: "HTML pages show only backups and devices",
      try: "--format text or json")
  }

  /// Says that the source was in clear, and what was passed over, where the result itself has no room for it.
  func warn(in session: Session) {
    let passedOver = ([statement.skippedSentence].compactMap(\.self) + statement.remarks).joined(separator: " ")
    session.warn(statement.sentence, why: passedOver.isEmpty ? nil : passedOver, evenQuiet: true)
  }

  /// It as one of two keychains that are compared.
  ///
  /// - Parameter leavesOut: Whether the other is a backup: what a backup never holds is no difference to one.
  func side(leavesOut: Bool) -> ComparisonSide {
    var items: [KeychainEntry] = []
    var leftOut: [MigrationPlan.Decision] = []
    // As of a device: a mark of a deleted item is no item, and is one to what a backup may hold.
    for entry in dump.entries where leavesOut || entry.attributes?.isTombstone != true {
      let candidate = entry.attributes.map { item in
        ExportCandidate(
          item: item, isAccessControlled: item[.accessControl] != nil,
          isAppClip: item[.appClip]?.integerValue.map { $0 != 0 } ?? false)
      }
      if leavesOut, let candidate, let reason = ExportExclusions.exclusionReason(for: candidate) {
        leftOut.append(entry.leftOut(because: reason))
      } else {
        items.append(entry)
      }
    }
    return ComparisonSide(
      kind: .dump, name: typed, argument: typed, deviceName: nil, items: items, hasKeychain: true, leftOut: leftOut,
      keybagDamage: nil, disclaimer: statement)
  }
}
