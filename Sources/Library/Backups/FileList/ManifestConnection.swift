package import Basics
import KeychainFormats
import SystemPackage

/// A connection to a backup's manifest database.
package typealias ManifestConnection = UntrustedDatabase<KeyhaulError>

extension UntrustedDatabase<KeyhaulError> {
  /// Opens a manifest database for reading.
  package convenience init(_ bytes: DatabaseBytes) throws(KeyhaulError) {
    let reader = try bytes.reader()
    try self.init(reading: reader, limits: .manifest) { reader.readError ?? KeyhaulError($0) }
  }

  /// Runs SQLite's check of all pages, rows, and index entries. Returns the first fault, or `nil` if there is none.
  ///
  /// - Parameter limit: The maximum CPU time in nanoseconds. The default is many times what a device's database needs.
  package func firstFault(within limit: Int64? = nil) throws(KeyhaulError) -> String? {
    do throws(KeyhaulError) {
      // The result is `nil` if the time limit was exceeded, and contains a `nil` if there is no fault.
      let result = try withTimeLimit(limit) { () throws(KeyhaulError) in try integrityFault() }
      return result ?? "its indexes take too long to check"
    } catch {
      guard error.code == .damaged else { throw error }
      return error.reason
    }
  }
}

extension DatabaseLimits {
  /// The limits for a manifest. A record has a few hundred bytes, and 16 MiB is enough for the largest extended
  /// attributes. A manifest has two tables, with five and two columns.
  package static let manifest = DatabaseLimits(valueByteCount: 16 << 20, columnCount: 32)
}

extension UntrustedRow {
  /// Returns a name, which may not be UTF-8.
  func name(_ column: Int32) -> DecodedName? { withText(column) { DecodedName($0) } }
}

extension KeyhaulError {
  fileprivate init(_ failure: SQLiteFailure) {
    self =
      switch failure.kind {
      case .noMemory: KeyhaulError(.unreadable, "the manifest database: out of memory", of: .noMemory)
      case .oldLibrary: KeyhaulError(.unreadable, failure.reason)
      case .tooBig: KeyhaulError(.overLimit, "the manifest database: \(quoted(failure.message))")
      default: KeyhaulError(.damaged, "the manifest database: \(quoted(failure.message))")
      }
  }
}

/// A modifiable copy of a checked manifest database in memory. Not thread-safe.
package final class ManifestWorkingCopy {
  private let connection: ManifestConnection

  /// Copies the whole database.
  package init(_ bytes: DatabaseBytes) throws(KeyhaulError) {
    let reader = try bytes.reader()
    connection = try ManifestConnection(copying: bytes.byteCount, limits: .manifest) {
      KeyhaulError($0)
    } fill: { (buffer) throws(KeyhaulError) in
      try reader.read(at: 0, into: buffer)
    }
  }

  /// Returns the keyed archive of a stored file, or `nil` if the manifest contains none.
  package func archive(of fileIdentifier: String) throws(KeyhaulError) -> [UInt8]? {
    var archive: [UInt8]?
    try connection.forEachRow("SELECT file FROM Files WHERE fileID = ?1", [.text(fileIdentifier)]) {
      archive = archive ?? $0.bytes(0)
    }
    return archive
  }

  /// Replaces the keyed archive of a stored file.
  package func replaceArchive(of fileIdentifier: String, with archive: [UInt8]) throws(KeyhaulError) {
    let count = try connection.run(
      "UPDATE Files SET file = ?2 WHERE fileID = ?1", [.text(fileIdentifier), .blob(archive)])
    guard count == 1 else {
      throw KeyhaulError(.damaged, "the manifest database does not list \(fileIdentifier) once")
    }
  }

  /// Returns the database for storage. It must not be changed afterwards.
  package func serialized() throws(KeyhaulError) -> [UInt8] {
    // The transaction began when the database was copied.
    try connection.run("COMMIT")
    guard let bytes = connection.withImage({ Array($0) }) else {
      throw KeyhaulError(.unreadable, "no memory for a copy of the manifest database", of: .noMemory)
    }
    return bytes
  }
}
