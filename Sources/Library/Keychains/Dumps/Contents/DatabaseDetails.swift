package import KeychainFormats

/// Details of a keychain database beyond its items.
package struct DatabaseDetails: Sendable, Hashable {
  /// The version of the schema, such as "12.11"; `nil` if the database does not state one.
  package let schema: String?
  /// The number of rows for each version of the item encryption. Rows that are too short to state a version are not
  /// counted.
  package let versionCounts: [UInt32: Int]
  /// The result of applying the database's journal files.
  package let journalStatus: JournalStatus
  /// The source of the keys.
  package let keys: KeySource
  /// The item tables that do not exist or cannot be read.
  package let missingTables: [ItemKind]

  /// The result of applying a write-ahead log (`-wal`) or rollback journal (`-journal`). The raw value is the identifier
  /// in machine-readable output.
  package enum JournalStatus: String, Sendable, CaseIterable, Hashable {
    /// There is no journal file, or it is empty.
    case none
    /// All committed changes in the log were applied.
    case applied
    /// The log was applied up to a point. It continues with frames that do not match their checksums or are not
    /// committed: the log is damaged, truncated or unfinished.
    case partiallyApplied = "applied-in-part"
    /// The log has no valid header or no committed transaction.
    case unreadable
    /// The log or rollback journal belongs to a different database: its page size differs, or applying it would damage
    /// the keychain. A log of an earlier state of the same database may go unnoticed.
    case unrelated = "foreign"
    /// A rollback journal of an unfinished change was applied, so the change was undone. SQLite does the same when it
    /// opens the database.
    case rolledBack = "taken-back"
    /// The journal file has no valid header, so SQLite ignores it. If it was the journal of an unfinished change, that
    /// change is not rolled back.
    case journalUnreadable = "journal-unreadable"
  }

  /// The source of a database's keys. The raw value is the identifier in machine-readable output.
  package enum KeySource: String, Sendable, CaseIterable, Hashable {
    /// The keys are unencrypted in the database, as a Simulator's key store writes them.
    case inDatabase = "beside"
    /// The user provided the class keys.
    case given
    /// There are no keys, so nothing can be decrypted.
    case absent
  }

  /// Creates the details of a database.
  ///
  /// - Parameters:
  ///   - schema: The version of the schema.
  ///   - versionCounts: The number of rows for each version of the item encryption.
  ///   - journalStatus: The result of applying the journal files.
  ///   - keys: The source of the keys.
  ///   - missingTables: The item tables that do not exist or cannot be read.
  package init(
    schema: String?, versionCounts: [UInt32: Int], journalStatus: JournalStatus, keys: KeySource,
    missingTables: [ItemKind] = []
  ) {
    self.missingTables = missingTables
    self.schema = schema
    self.versionCounts = versionCounts
    self.journalStatus = journalStatus
    self.keys = keys
  }
}
