/// The bytes of a database that SQLite reads.
package protocol DatabaseContent: AnyObject {
  /// The size of the database.
  var byteCount: Int { get }
  /// Whether the system refused to read. SQLite has no result code for this and sometimes reports it as damage.
  var isRefused: Bool { get }
  /// Fills a buffer with the bytes from `offset` on, which must all exist.
  ///
  /// - Returns: Whether the bytes could be read.
  func copyBytes(from offset: Int, to buffer: UnsafeMutableRawBufferPointer) -> Bool
}
