package import Basics
import CSQLite
import GRDB
import KeychainFormats

/// Builds a manifest database in memory. No file is created, and equal rows result in equal bytes.
package enum ManifestDatabaseBuilder {
  package struct Row {
    let fileIdentifier: String
    let domain: String
    let relativePath: String
    let flags: Int
    let record: [UInt8]

    /// Creates a row.
    ///
    /// - Parameter record: The keyed archive of the file.
    package init(fileIdentifier: String, domain: String, relativePath: String, flags: Int, record: [UInt8]) {
      self.fileIdentifier = fileIdentifier
      self.domain = domain
      self.relativePath = relativePath
      self.flags = flags
      self.record = record
    }
  }

  package static func build(_ rows: [Row]) throws(KeyhaulError) -> [UInt8] {
    do {
      var configuration = Configuration()
      // Keeps GRDB's queue until the process ends (see `DispatchQueues`).
      configuration.prepareDatabase { _ in DispatchQueues.keepCurrent() }
      let queue = try DatabaseQueue(configuration: configuration)
      return try queue.inDatabase { database in
        try database.execute(
          sql: """
            PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA secure_delete = ON;
            PRAGMA user_version = \(ManifestSchema.userVersion)
            """)
        try database.inTransaction {
          for statement in ManifestSchema.statements { try database.execute(sql: statement) }
          for row in rows {
            // The record is a literal, because GRDB would need a Foundation type for a parameter. Its bytes are
            // trusted.
            try database.execute(
              sql: """
                INSERT INTO Files (fileID, domain, relativePath, flags, file)
                VALUES (?, ?, ?, ?, x'\(String(hexadecimal: row.record))')
                """,
              arguments: [row.fileIdentifier, row.domain, row.relativePath, row.flags])
          }
          return .commit
        }
        return try serialize(database)
      }
    } catch let error as KeyhaulError {
      throw error
    } catch {
      throw KeyhaulError(.unwritable, "the manifest database cannot be made")
    }
  }

  private static func serialize(_ database: Database) throws -> [UInt8] {
    var size: Int64 = 0
    guard let bytes = sqlite3_serialize(database.sqliteConnection, "main", &size, 0) else {
      throw KeyhaulError(.unwritable, "not enough memory for the manifest database")
    }
    defer { sqlite3_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(size)))
  }
}
