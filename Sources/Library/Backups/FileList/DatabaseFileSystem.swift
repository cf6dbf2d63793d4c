import Basics
import CSQLite

/// What SQLite takes for the file system of a manifest database: files that can be read and nothing else, whose bytes are
/// decrypted as they are read. There are no names, no journals, no locks.
///
/// Source: SQLite, "The SQLite OS Interface or VFS".
enum DatabaseFileSystem {
  static let name = "keyhaul-manifest"

  /// The databases that are about to be opened, by the names they are opened under.
  private static let waiting = Locked<(next: Int, readers: [String: Waiting])>((0, [:]))

  /// A reader on its way from the thread that opens a connection into SQLite on the same thread.
  private struct Waiting: @unchecked Sendable {
    let reader: DatabaseBytes.Reader
  }

  /// Opens a read-only connection to a database.
  ///
  /// - Returns: SQLite's result, and the connection, which is to be closed in any case.
  static func open(_ reader: DatabaseBytes.Reader) -> (code: Int32, connection: OpaquePointer?) {
    guard isRegistered else { return (SQLITE_ERROR, nil) }
    let handed = Waiting(reader: reader)
    let path = waiting.withLock { state in
      state.next += 1
      state.readers["\(state.next)"] = handed
      return "\(state.next)"
    }
    defer { _ = waiting.withLock { $0.readers.removeValue(forKey: path) } }
    var connection: OpaquePointer?
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX
    return (sqlite3_open_v2(path, &connection, flags, name), connection)
  }

  fileprivate static func take(_ path: UnsafePointer<CChar>?) -> DatabaseBytes.Reader? {
    guard let path else { return nil }
    return waiting.withLock { $0.readers.removeValue(forKey: String(cString: path)) }?.reader
  }

  /// Registers the file system once for the process; SQLite keeps pointers to what is allocated here.
  private static let isRegistered: Bool = {
    guard let standard = sqlite3_vfs_find(nil) else { return false }
    // Time, sleep and randomness stay the system's.
    var system = standard.pointee
    system.iVersion = 1
    system.szOsFile = Int32(MemoryLayout<OpenDatabase>.size)
    system.mxPathname = 64
    system.pNext = nil
    system.zName = UnsafePointer(lastingCopy(of: name))
    system.pAppData = nil
    system.xOpen = { _, path, file, flags, outFlags in
      guard let file, let reader = DatabaseFileSystem.take(path) else { return SQLITE_CANTOPEN }
      UnsafeMutableRawPointer(file).initializeMemory(
        as: OpenDatabase.self,
        repeating: OpenDatabase(
          base: sqlite3_file(pMethods: methods), reader: Unmanaged.passRetained(reader).toOpaque()), count: 1)
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

  private nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    methods.xClose = { file in
      OpenDatabase.release(file)
      return SQLITE_OK
    }
    methods.xRead = { file, target, count, offset in OpenDatabase.read(file, target, count, offset) }
    methods.xWrite = { _, _, _, _ in SQLITE_READONLY }
    methods.xTruncate = { _, _ in SQLITE_READONLY }
    methods.xSync = { _, _ in SQLITE_OK }
    methods.xFileSize = { file, size in
      guard let reader = OpenDatabase.reader(of: file) else { return SQLITE_IOERR }
      size?.pointee = Int64(reader.byteCount)
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

/// An open file in the form that SQLite allocates: its own part first.
private struct OpenDatabase {
  /// `SQLITE_IOERR_SHORT_READ`, a macro that is computed and so not imported.
  private static let shortRead = SQLITE_IOERR | 2 << 8

  let base: sqlite3_file
  /// A retained `DatabaseBytes.Reader`.
  let reader: UnsafeMutableRawPointer

  private static func opened(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<OpenDatabase>? {
    file.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: OpenDatabase.self) }
  }

  static func reader(of file: UnsafeMutablePointer<sqlite3_file>?) -> DatabaseBytes.Reader? {
    opened(file).map { Unmanaged<DatabaseBytes.Reader>.fromOpaque($0.pointee.reader).takeUnretainedValue() }
  }

  static func release(_ file: UnsafeMutablePointer<sqlite3_file>?) {
    guard let opened = opened(file) else { return }
    Unmanaged<DatabaseBytes.Reader>.fromOpaque(opened.pointee.reader).release()
  }

  /// SQLite asks for bytes beyond the end too and then wants zeros.
  static func read(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ target: UnsafeMutableRawPointer?, _ count: Int32, _ offset: Int64
  ) -> Int32 {
    guard let reader = reader(of: file), let target, count >= 0, let start = Int(exactly: offset), start >= 0 else {
      return SQLITE_IOERR
    }
    let buffer = UnsafeMutableRawBufferPointer(start: target, count: Int(count))
    let available = max(0, min(buffer.count, reader.byteCount - start))
    do throws(BackupArchiveError) {
      if available > 0 {
        try reader.read(at: start, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<available]))
      }
    } catch {
      return SQLITE_IOERR
    }
    guard available < buffer.count else { return SQLITE_OK }
    UnsafeMutableRawBufferPointer(rebasing: buffer[available...]).initializeMemory(as: UInt8.self, repeating: 0)
    return shortRead
  }
}
