import KeyhaulKit
import SystemPackage

/// A keychain's own database read from its file and the log or the journal beside it, without touching any.
struct DatabaseReading {
  let database: KeychainDatabase
  let rows: [KeychainDatabase.OpenedRow]
  let dump: KeychainDump
  /// SHA-256 of the file, or of file and log or journal, one behind the other.
  let digest: [UInt8]
  /// The file, its log and its journal as they stood when they were read; `nil` for one that was not there.
  let statuses: [FileStatus?]

  /// - Throws: `.busy` for one that somebody writes to while it is read.
  init(
    _ path: String, named name: String, _ keys: DatabaseKeyOptions?, in session: Session
  ) throws(CommandFailure) {
    let classKeys = try keys?.keys(of: name, in: session) ?? [:]
    let (file, log, journal, statuses) = try Self.bytes(of: path, named: name, in: session)
    self.statuses = statuses
    do throws(KeychainDatabaseError) {
      database = try KeychainDatabase(file: file, log: log, journal: journal)
    } catch {
      let isNone = error.code == .unreadable || error.code == .unknownForm
      throw CommandFailure(
        CommandStatus(error.category),
        isNone ? "\(name) is not a backup or a keychain database" : "cannot read \(name)",
        why: error.reason, try: error.advice)
    }
    do throws(DataProtectionError) {
      rows = try database.opened(with: database.keys(classKeys: classKeys))
      digest =
        switch database.log {
        case .applied, .appliedInPart: try Digest.sha256(file + log)
        case .takenBack: try Digest.sha256(file + journal)
        case .none, .unreadable, .foreign, .journalUnreadable: try Digest.sha256(file)
        }
    } catch {
      throw CommandFailure(error, doing: "cannot read \(name)")
    }
    dump = KeychainDump(database, opened: rows, hasGivenKeys: !classKeys.isEmpty)
    try checkKeys(named: name, isAnyGiven: !classKeys.isEmpty, in: session)
  }

  /// Says that keys are missing; refuses keys of which none opens anything.
  private func checkKeys(named name: String, isAnyGiven: Bool, in session: Session) throws(CommandFailure) {
    guard !rows.isEmpty, !rows.contains(where: { $0.opened.item != nil }) else { return }
    if isAnyGiven,
      rows.contains(where: { $0.opened.fault?.place == .metadataClassKey && $0.opened.verdict == .tagMismatch })
    {
      throw CommandFailure(
        .wrongPassword, "the class keys cannot decrypt \(name)", why: "none of them unwraps a metadata key",
        try: "the class keys of the database's device, from the device's own keybag, not from a backup's")
    }
    guard !isAnyGiven, dump.database?.keys == .absent else { return }
    session.warn(
      "nothing in \(name) can be decrypted", why: "the keys are not in the database", try: "--class-keys-file PATH")
  }

  /// The three files as they stood at one moment: what changed in between is read again.
  private static func bytes(
    of path: String, named name: String, in session: Session
  ) throws(CommandFailure) -> (file: [UInt8], log: [UInt8], journal: [UInt8], statuses: [FileStatus?]) {
    func read(_ path: String, what: String) throws(CommandFailure) -> [UInt8] {
      try InputFile.read(path, atMost: KeychainDatabase.maximumByteCount, what: what, in: session)
    }
    for _ in 0..<3 {
      let before = Self.statuses(of: path)
      let file = try read(path, what: name)
      let log = before[1] == nil ? [] : try read(path + "-wal", what: path + "-wal")
      let journal = before[2] == nil ? [] : try read(path + "-journal", what: path + "-journal")
      if Self.isUnchanged(path, since: before) { return (file, log, journal, before) }
    }
    throw CommandFailure(
      .busy, "\(name) is being written to", why: "it changed each time Keyhaul read it",
      try: "shut down the Simulator, or read a copy")
  }

  private static func statuses(of path: String) -> [FileStatus?] {
    [path, path + "-wal", path + "-journal"].map { (try? FileSystem.real.status(of: $0, followsLink: true)) ?? nil }
  }

  /// Whether a database and what is beside it are as they stood then. None is opened: the locks of whoever has it open in this
  /// process would be gone.
  static func isUnchanged(_ path: String, since earlier: [FileStatus?]) -> Bool {
    zip(earlier, statuses(of: path)).allSatisfy { before, after in
      switch (before, after) {
      case (nil, nil): true
      // SQLite gives a log to the database's owner.
      case (let before?, let after?): after.hasUnchangedBytes(since: before)
      // SQLite makes an empty log where it opens a database.
      case (let one?, nil), (nil, let one?): one.byteCount == 0
      }
    }
  }
}
