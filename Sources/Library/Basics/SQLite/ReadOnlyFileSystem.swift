import CSQLite

/// A file system for SQLite whose only file is a `DatabaseContent`, which can only be read. There are no names,
/// journals or locks.
///
/// Source: SQLite, "The SQLite OS Interface or VFS".
enum ReadOnlyFileSystem {
  static let name = "keyhaul-read-only"

  /// The databases that SQLite is about to open, by their paths, and the number of assigned paths.
  private static let pending = Locked<(pathCount: Int, databases: [String: DatabaseBox])>((0, [:]))

  /// Wraps the content of a database, because `Unmanaged` requires a class. SQLite opens the database on the same thread.
  /// From then on, the open file retains the wrapper.
  fileprivate final class DatabaseBox: @unchecked Sendable {
    let content: any DatabaseContent

    init(_ content: any DatabaseContent) { self.content = content }
  }

  /// Opens a read-only connection to a database.
  ///
  /// - Returns: SQLite's result, and the connection, which must be closed even after a failure.
  static func open(_ content: any DatabaseContent) -> (code: Int32, connection: OpaquePointer?) {
    guard isRegistered else { return (SQLITE_ERROR, nil) }
    let database = DatabaseBox(content)
    let path = pending.withLock { state in
      state.pathCount += 1
      let path = "\(state.pathCount)"
      state.databases[path] = database
      return path
    }
    defer { _ = pending.withLock { $0.databases.removeValue(forKey: path) } }
    var connection: OpaquePointer?
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX
    return (sqlite3_open_v2(path, &connection, flags, name), connection)
  }

  private static func removePending(_ path: UnsafePointer<CChar>?) -> DatabaseBox? {
    guard let path else { return nil }
    return pending.withLock { $0.databases.removeValue(forKey: String(cString: path)) }
  }

  /// Whether the file system is registered with SQLite, which happens on first access. SQLite keeps pointers to the
  /// memory that is allocated here, so it is never freed.
  private static let isRegistered: Bool = {
    guard let standard = sqlite3_vfs_find(nil) else { return false }
    // Time, sleep and randomness come from the default VFS.
    var system = standard.pointee
    system.iVersion = 1
    system.szOsFile = Int32(MemoryLayout<OpenFile>.size)
    // The paths are decimal numbers.
    system.mxPathname = 64
    system.pNext = nil
    system.zName = UnsafePointer(lastingCopy(of: name))
    system.pAppData = nil
    system.xOpen = { _, path, file, flags, outFlags in
      guard let file, let database = ReadOnlyFileSystem.removePending(path) else { return SQLITE_CANTOPEN }
      UnsafeMutableRawPointer(file).initializeMemory(
        as: OpenFile.self,
        repeating: OpenFile(
          base: sqlite3_file(pMethods: methods), content: Unmanaged.passRetained(database).toOpaque()), count: 1)
      outFlags?.pointee = flags
      return SQLITE_OK
    }
    system.xDelete = { _, _, _ in SQLITE_IOERR }
    system.xAccess = { _, _, _, result in
      result?.pointee = 0
      return SQLITE_OK
    }
    system.xFullPathname = { _, path, count, target in
      guard let path, let target else { return SQLITE_CANTOPEN }
      let bytes = String(cString: path).utf8CString
      guard bytes.count <= Int(count) else { return SQLITE_CANTOPEN }
      for (index, byte) in bytes.enumerated() { target[index] = byte }
      return SQLITE_OK
    }
    let registered = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    registered.initialize(to: system)
    return sqlite3_vfs_register(registered, 0) == SQLITE_OK
  }()

  private static func lastingCopy(of text: String) -> UnsafeMutablePointer<CChar> {
    let bytes = text.utf8CString
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    for (index, byte) in bytes.enumerated() { copy[index] = byte }
    return copy
  }

  /// The operations on an open file. Locks always succeed, because the content never changes.
  private nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    methods.xClose = { file in
      OpenFile.release(file)
      return SQLITE_OK
    }
    methods.xRead = { file, target, count, offset in OpenFile.read(file, target, count, offset) }
    methods.xWrite = { _, _, _, _ in SQLITE_READONLY }
    methods.xTruncate = { _, _ in SQLITE_READONLY }
    methods.xSync = { _, _ in SQLITE_OK }
    methods.xFileSize = { file, size in
      guard let content = OpenFile.content(of: file) else { return SQLITE_IOERR }
      size?.pointee = Int64(content.byteCount)
      return SQLITE_OK
    }
    methods.xLock = { _, _ in SQLITE_OK }
    methods.xUnlock = { _, _ in SQLITE_OK }
    methods.xCheckReservedLock = { _, result in
      result?.pointee = 0
      return SQLITE_OK
    }
    methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    methods.xSectorSize = { _ in 4096 }
    methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_IMMUTABLE }
    let allocated = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    allocated.initialize(to: methods)
    return UnsafePointer(allocated)
  }()
}

/// An open file. SQLite allocates it and requires `sqlite3_file` as the first member.
private struct OpenFile {
  /// `SQLITE_IOERR_SHORT_READ`, a macro that is computed and so not imported.
  private static let shortRead = SQLITE_IOERR | 2 << 8

  let base: sqlite3_file
  /// A retained `ReadOnlyFileSystem.DatabaseBox`.
  let content: UnsafeMutableRawPointer

  private static func opened(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<OpenFile>? {
    file.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: OpenFile.self) }
  }

  static func content(of file: UnsafeMutablePointer<sqlite3_file>?) -> (any DatabaseContent)? {
    opened(file).map {
      Unmanaged<ReadOnlyFileSystem.DatabaseBox>.fromOpaque($0.pointee.content).takeUnretainedValue().content
    }
  }

  static func release(_ file: UnsafeMutablePointer<sqlite3_file>?) {
    guard let opened = opened(file) else { return }
    Unmanaged<ReadOnlyFileSystem.DatabaseBox>.fromOpaque(opened.pointee.content).release()
  }

  /// Reads bytes for SQLite, which also asks for bytes beyond the end and then expects zeros.
  static func read(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ target: UnsafeMutableRawPointer?, _ count: Int32, _ offset: Int64
  ) -> Int32 {
    guard let content = content(of: file), let target, count >= 0, let start = Int(exactly: offset), start >= 0 else {
      return SQLITE_IOERR
    }
    let buffer = UnsafeMutableRawBufferPointer(start: target, count: Int(count))
    let available = max(0, min(buffer.count, content.byteCount - start))
    if available > 0 {
      let isRead = content.copyBytes(from: start, to: UnsafeMutableRawBufferPointer(rebasing: buffer[..<available]))
      guard isRead else { return SQLITE_IOERR }
    }
    guard available < buffer.count else { return SQLITE_OK }
    UnsafeMutableRawBufferPointer(rebasing: buffer[available...]).initializeMemory(as: UInt8.self, repeating: 0)
    return shortRead
  }
}

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
