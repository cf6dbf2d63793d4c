import Basics
import KeychainFormats

extension KeychainDatabase {
  /// An open database, its complete content, and the use of its journal files.
  typealias OpenedDatabase = (
    connection: KeychainConnection, image: DatabaseImage, status: DatabaseDetails.JournalStatus
  )

  /// Opens the database with the committed changes of its log, or without the unfinished change of its journal. A
  /// database has one of the two: beside a log with content, the journal is ignored.
  static func opened(
    _ image: DatabaseImage, log logBytes: [UInt8], journal journalBytes: [UInt8]
  ) throws(KeyhaulError) -> OpenedDatabase {
    guard logBytes.isEmpty else { return try opened(image, log: logBytes) }
    return try opened(image, journal: journalBytes)
  }

  private static func opened(
    _ image: DatabaseImage, journal journalBytes: [UInt8]
  ) throws(KeyhaulError) -> OpenedDatabase {
    guard let journal = RollbackJournal(journalBytes) else {
      let isFinished = RollbackJournal.isFinished(journalBytes)
      return (try KeychainConnection(image), image, isFinished ? .none : .journalUnreadable)
    }
    return try openedAfterChange(image, as: .rolledBack, named: "its journal") { () throws(KeyhaulError) in
      try image.rollingBack(journal, of: journalBytes)
    }
  }

  private static func opened(
    _ image: DatabaseImage, log logBytes: [UInt8]
  ) throws(KeyhaulError) -> OpenedDatabase {
    guard let log = WriteAheadLog(logBytes), log.pageCount > 0 else {
      return (try KeychainConnection(image), image, .unreadable)
    }
    guard log.pageByteCount == image.pageByteCount else { return (try KeychainConnection(image), image, .unrelated) }
    return try openedAfterChange(
      image, as: log.hasUncommittedFrames ? .partiallyApplied : .applied, named: "its log"
    ) {
      () throws(KeyhaulError) in try image.applying(log, of: logBytes)
    }
  }

  /// Applies a journal file if the result is an intact keychain database. Otherwise opens the database without it.
  ///
  /// - Parameters:
  ///   - image: The database without the journal file.
  ///   - status: The status if the journal file is applied.
  ///   - name: The name of the journal file in error messages.
  ///   - change: Applies the journal file.
  private static func openedAfterChange(
    _ image: DatabaseImage, as status: DatabaseDetails.JournalStatus, named name: String,
    _ change: () throws(KeyhaulError) -> DatabaseImage
  ) throws(KeyhaulError) -> OpenedDatabase {
    do throws(KeyhaulError) {
      let changedImage = try change()
      let database = try KeychainConnection(changedImage)
      // The log of another database may result in an intact database that is not a keychain.
      if try database.isIntact(), try containsItemTable(database) { return (database, changedImage, status) }
    } catch {
      guard error.code == .databaseDamaged || error.code == .notADatabase else { throw error }
    }
    let database = try KeychainConnection(image)
    guard try database.isIntact() else {
      throw KeyhaulError(.databaseDamaged, "its pages contradict each other, both with and without \(name)")
    }
    return (database, image, .unrelated)
  }

  /// Returns whether the database has an item table.
  static func containsItemTable(_ database: KeychainConnection) throws(KeyhaulError) -> Bool {
    for kind in ItemKind.allCases where try database.columns(of: kind.rawValue) != nil { return true }
    return false
  }
}
