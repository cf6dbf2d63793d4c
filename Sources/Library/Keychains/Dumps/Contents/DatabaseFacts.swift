package import KeychainFormats

/// What is told of a keychain's own database besides its items.
package struct DatabaseFacts: Sendable, Hashable {
  /// The version of its schema, "12.11"; `nil` if it names none.
  package let schema: String?
  /// How many rows are of which version of sealing; rows that are too short to name one are of none of them.
  package let versionCounts: [UInt32: Int]
  /// What became of the log beside it.
  package let log: LogUse
  /// Where the keys are from.
  package let keys: KeySource
  /// Tables of items that are not there or cannot be read.
  package let missingTables: [ItemKind]

  /// What became of the log, the file `-wal`, or of a journal. The raw value is the identifier in machine-readable output.
  package enum LogUse: String, Sendable, CaseIterable, Hashable {
    /// There is none, or nothing is in it.
    case none
    /// What it had committed was read with the database.
    case applied
    /// What it had committed up to a place was read; behind it stand frames of the same round that do not fit, or that no
    /// commit ends: damaged, cut off, or not finished.
    case appliedInPart = "applied-in-part"
    /// It begins as no log does, or has no finished transaction.
    case unreadable
    /// It is of another database: pages of another size, or a database that is intact without it and not with it. A
    /// log of an earlier state of the same database may go unnoticed.
    case foreign
    /// There is a journal in its place, the file `-journal`, of a change that was not finished: the database was read as
    /// it was before that change, which is how whoever opens it next leaves it.
    case takenBack = "taken-back"
    /// The file in the journal's place does not begin like a journal, so SQLite ignores it. If it was the journal of an
    /// unfinished change, that change is not rolled back.
    case journalUnreadable = "journal-unreadable"
  }

  /// Where the keys of a database are from. The raw value is the identifier in machine-readable output.
  package enum KeySource: String, Sendable, CaseIterable, Hashable {
    /// They lie in the database, wrapped with nothing, as a Simulator's key store leaves them.
    case beside
    /// The keys of classes were given.
    case given
    /// There are none: nothing opens.
    case absent
  }

  /// Creates what is told of a database.
  ///
  /// - Parameters:
  ///   - schema: The version of its schema.
  ///   - versionCounts: How many rows are of which version.
  ///   - log: What became of the log.
  ///   - keys: Where the keys are from.
  ///   - missingTables: Tables of items that are not there or cannot be read.
  package init(
    schema: String?, versionCounts: [UInt32: Int], log: LogUse, keys: KeySource, missingTables: [ItemKind] = []
  ) {
    self.missingTables = missingTables
    self.schema = schema
    self.versionCounts = versionCounts
    self.log = log
    self.keys = keys
  }
}
