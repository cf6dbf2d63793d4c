public import Basics

extension KeyhaulError.Domain {
  /// Errors of a keychain database file as a whole, not of single items.
  public static let keychainDatabase = Self("keychain-database")
}

extension KeyhaulError.Code {
  private static func database(
    _ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy
  ) -> Self {
    Self(rawValue, of: .keychainDatabase, category, summary, advice: advice)
  }

  /// The bytes are not an SQLite database.
  public static let notADatabase = database(
    "unreadable", .refused, "it is not an SQLite database", advice: "check the path")
  /// The file is a database, but not a keychain.
  public static let unknownDatabase = database(
    "unknownForm", .refused, "it is not a keychain database", advice: "check the path")
  /// A class key file is not valid. An item that a Simulator cannot store has the same code with its own summary
  /// (`KeyhaulError.unstorableItem`).
  public static let malformed = database(
    "malformed", .refused, "it is not a class key file",
    advice: "a JSON object that maps each class (6 to 12) to a key of 64 hexadecimal digits")
  /// Another program has the database open.
  public static let databaseBusy = database("busy", .busy, "the database is in use", advice: "shut down the Simulator")
  /// The database cannot be written to.
  public static let databaseNotWritable = database(
    "notWritable", .failed, "the database cannot be written to", advice: "check its permissions")
  /// The database can be read but not changed, because of its schema, its keys or its definitions.
  public static let unchangeable = database(
    "unchangeable", .refused, "the database was not changed", advice: "a command that only reads it")
  /// The database already has an item with the same primary key.
  public static let databaseDuplicate = database(
    "duplicate", .failed, "the database already has this item", advice: "use another name, or change the existing item")
  /// The database is truncated, or its pages contradict each other.
  public static let databaseDamaged = database(
    "damaged", .damaged, "the database is damaged", advice: "another copy of it, together with its -wal file")
  /// The database exceeds a limit on sizes or counts.
  public static let databaseOverLimit = database(
    "overLimit", .refused, "the database is over a limit", advice: "don't trust this file")
  /// SQLite or the cryptographic library does not work on this computer.
  public static let databaseFailed = database(
    "failed", .failed, "the database cannot be read here", advice: "check the installation of SQLite's library")
  /// The system refused to read or write the file.
  public static let databaseDisk = database(
    "disk", .failed, "the database cannot be read or written", advice: "free some space, or check the disk")
  /// A change failed, and the database cannot be read afterwards, so it is unknown whether the change was made.
  public static let unknownOutcome = database(
    "unknownOutcome", .failed, "the database may have been changed",
    advice: "check the disk, and then the database's items")
}

extension KeyhaulError {
  /// Creates the error for an item that a Simulator's keychain cannot store.
  package static func unstorableItem(_ reason: String) -> KeyhaulError {
    KeyhaulError(
      .malformed, reason,
      meaning: ErrorMeaning(
        .refused, "the item cannot be stored", advice: "see the attributes of this kind of item"))
  }

  /// The error for a change to a row that a Simulator's keychain no longer has.
  static let missingRow = KeyhaulError(
    .malformed, "a row no longer exists",
    meaning: ErrorMeaning(.refused, "the item does not exist", advice: "run it again"))
}
