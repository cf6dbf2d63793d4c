import KeyhaulKit
import SystemPackage

/// A keychain database, read from its file and from the write-ahead log or rollback journal beside it. Reading changes
/// none of these files.
struct LoadedDatabase {
  let database: KeychainDatabase
  let rows: [KeychainDatabase.DecryptedRow]
  let dump: KeychainDump
  /// The SHA-256 digest of the file, or of the file followed by its log or journal.
  let digest: [UInt8]

  /// Reads a database.
  ///
  /// - Throws: `.busy` if another process keeps writing to it.
  init(
    _ path: String, named name: String, _ keys: DatabaseKeyOptions?, in session: Session
  ) throws(CommandError) {
    let classKeys = try keys?.keys(of: name, in: session) ?? [:]
    let (file, log, journal) = try Self.bytes(of: path, named: name, in: session)
    do throws(KeyhaulError) {
      database = try KeychainDatabase(file: file, log: log, journal: journal)
    } catch {
      let isUnrecognized = error.code == .notADatabase || error.code == .unknownDatabase
      throw CommandError(
        CommandExitStatus(error.category),
        isUnrecognized ? "\(name) is not a backup or a keychain database" : "cannot read \(name)",
        why: error.reason, try: error.advice, of: error.errno)
    }
    do throws(DataProtectionError) {
      rows = try database.decrypted(with: database.keys(classKeys: classKeys))
      digest =
        switch database.journalStatus {
        case .applied, .partiallyApplied: try Digest.sha256(file + log)
        case .rolledBack: try Digest.sha256(file + journal)
        case .none, .unreadable, .unrelated, .journalUnreadable: try Digest.sha256(file)
        }
    } catch {
      throw CommandError(error, failedAction: "cannot read \(name)")
    }
    dump = KeychainDump(database, opened: rows, hasGivenKeys: !classKeys.isEmpty)
    try checkKeys(named: name, hasGivenKeys: !classKeys.isEmpty, in: session)
  }

  /// Warns if keys are missing, and rejects keys that decrypt nothing.
  private func checkKeys(named name: String, hasGivenKeys: Bool, in session: Session) throws(CommandError) {
    guard !rows.isEmpty, !rows.contains(where: { $0.result.item != nil }) else { return }
    if hasGivenKeys,
      rows.contains(where: { $0.result.fault?.step == .metadataClassKey && $0.result.verdict == .tagMismatch })
    {
      throw CommandError(
        .wrongPassword, "the class keys cannot decrypt \(name)", why: "none of the keys unwraps a metadata key",
        try: "the class keys of the database's device, from the device's own keybag, not from a backup's")
    }
    guard !hasGivenKeys, dump.database?.keys == .absent else { return }
    session.warn(
      "nothing in \(name) can be decrypted", why: "the keys are not in the database", try: "--class-keys-file PATH")
  }

  /// Reads the three files, all in the state of one moment. If a file changes in the meantime, reads them all again.
  ///
  /// - Throws: `.busy` if they keep changing.
  private static func bytes(
    of path: String, named name: String, in session: Session
  ) throws(CommandError) -> (file: [UInt8], log: [UInt8], journal: [UInt8]) {
    func read(_ path: String, status: FileStatus?) throws(CommandError) -> [UInt8] {
      // SQLite creates and removes an empty log or journal without changing the database.
      guard let status, status.byteCount > 0 else { return [] }
      return try InputFile.read(path, atMost: KeychainDatabase.maximumByteCount, what: path, in: session)
    }
    for attempt in 0..<attemptCount {
      try Interruption.check()
      if attempt > 0 { DeviceClock.system.sleep(.milliseconds(clockTickMilliseconds)) }
      let before = FileStatuses(of: path)
      guard !hasJustChanged(before) else { continue }
      do throws(CommandError) {
        let file = try InputFile.read(path, atMost: KeychainDatabase.maximumByteCount, what: name, in: session)
        let log = try read(path + "-wal", status: before.log)
        let journal = try read(path + "-journal", status: before.journal)
        if Self.isUnchanged(path, since: before) { return (file, log, journal) }
      } catch {
        // A change may be the only reason why a file is missing or too long.
        if Self.isUnchanged(path, since: before) { throw error }
      }
    }
    throw CommandError(
      .busy, "\(name) is being written to", why: "it changed each time Keyhaul read it",
      try: "shut down the Simulator, or read a copy")
  }

  /// The number of attempts to read a database that changes.
  private static let attemptCount = 20
  /// An upper bound for the tick of a file system's clock (at most 10 ms on Linux). Two changes within one tick leave
  /// the same time in a file's status.
  private static let clockTickMilliseconds = 20

  /// Returns whether a further change could go unnoticed, because one of the files has just changed.
  private static func hasJustChanged(_ statuses: FileStatuses) -> Bool {
    let now = DeviceClock.system.now().secondsSince1970
    // A time more than a second in the future was set by another clock, so the file has not just changed.
    let recentAges = -1..<Double(clockTickMilliseconds) / 1000
    return statuses.all.contains { status in
      guard let age = status.map({ now - $0.lastChange }) else { return false }
      return recentAges.contains(age)
    }
  }

  /// The statuses of a database's file, write-ahead log and rollback journal; `nil` if the file is missing.
  private struct FileStatuses {
    let database: FileStatus?
    let log: FileStatus?
    let journal: FileStatus?

    init(of path: String) {
      database = OutputFile.status(at: path)
      log = OutputFile.status(at: path + "-wal")
      journal = OutputFile.status(at: path + "-journal")
    }

    var all: [FileStatus?] { [database, log, journal] }
  }

  private static func isUnchanged(_ path: String, since earlier: FileStatuses) -> Bool {
    zip(earlier.all, FileStatuses(of: path).all).allSatisfy { before, after in
      switch (before, after) {
      case (nil, nil): true
      // Ignores changes of the owner, because SQLite may change the owner of a log to the owner of the database.
      case (let before?, let after?): after.hasUnchangedBytes(since: before)
      // SQLite creates an empty log when it opens a database.
      case (let file?, nil), (nil, let file?): file.byteCount == 0
      }
    }
  }
}
