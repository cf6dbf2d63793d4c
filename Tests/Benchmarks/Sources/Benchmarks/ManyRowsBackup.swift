import Backups
import Basics
import CSQLiteForFixtures
import Foundation
import KeychainCrypto
import KeychainFormats

/// An encrypted backup with many rows in `Manifest.db`, like the backup of a very full device. Three of ten rows are files,
/// as in real backups.
struct ManyRowsBackup {
  let rowCount: Int
  /// The size of each file. Empty files suffice for figures that depend only on names and sizes.
  var payloadByteCount = 0
  /// The first three of each ten rows are files. The others are directories.
  private static let fileShare = (files: 3, rows: 10)

  /// Writes the backup in another process, because the memory of this process counts in the peak of the programs
  /// that it starts.
  func writeInOtherProcess(to directory: URL) throws {
    let path = directory.path(percentEncoded: false)
    _ = try Run(CommandLine.arguments[0], [Self.argument, path, String(rowCount), String(payloadByteCount)])
  }

  static let argument = "--write-many-rows"

  /// Writes a backup for the arguments `FOLDER ROWS BYTES`, in the process that `writeInOtherProcess(to:)` starts.
  static func write(_ arguments: [String]) throws {
    guard arguments.count == 3, let rows = Int(arguments[1]), let bytes = Int(arguments[2]) else { exit(64) }
    try ManyRowsBackup(rowCount: rows, payloadByteCount: bytes).write(to: URL(filePath: arguments[0]))
  }

  private func write(to directory: URL) throws {
    let random = SeededRandomSource(seed: "many rows")
    let password: Secret? = Secret(utf8: BenchmarkFolder.password)
    let unlockedKeybag = try BackupKeybag.make(
      password: password, deviceKey: try HardwareUID(from: random).deviceKey(), rounds: 1, random: random)
    let keybag = unlockedKeybag.keybag
    let keys = unlockedKeybag.classKeys
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for prefix in 0..<256 {
      try FileManager.default.createDirectory(
        at: directory.appending(path: String(format: "%02x", prefix)), withIntermediateDirectories: true)
    }
    let plainDatabase = directory.appending(path: "Manifest.plain")
    try writeDatabase(to: plainDatabase, directory: directory, keys: keys, random: random)
    let databaseKey = try Secret(count: 32, from: random)
    let manifestKey = try keys.wrapFileKey(databaseKey, keyClass: .fileUntilFirstUserAuthentication, random: random)
    try encrypt(plainDatabase, to: directory.appending(path: "Manifest.db"), key: databaseKey)
    try FileManager.default.removeItem(at: plainDatabase)
    let manifest = BackupManifest(
      date: KeychainDate(secondsSince1970: 1_795_197_850), isEncrypted: true, wasPasscodeSet: true, keybag: keybag,
      manifestKey: manifestKey, device: BackupDevice(identifier: "00008030-001A2B3C4D5E6F70", name: "many rows"))
    try Data(manifest.serialized()).write(to: directory.appending(path: "Manifest.plist"))
    let status = BackupStatus(uuid: nil, date: nil)
    try Data(status.serialized()).write(to: directory.appending(path: "Status.plist"))
  }

  private func writeDatabase(
    to url: URL, directory: URL, keys: ClassKeys, random: some RandomSource
  ) throws {
    var connection: OpaquePointer?
    guard sqlite3_open(url.path(percentEncoded: false), &connection) == SQLITE_OK else { throw failure(connection) }
    defer { sqlite3_close(connection) }
    let schema = """
      PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000;
      CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB);
      CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
      BEGIN;
      """
    guard sqlite3_exec(connection, schema, nil, nil, nil) == SQLITE_OK else { throw failure(connection) }
    try insertRows(connection, directory: directory, keys: keys, random: random)
    let indexes = """
      COMMIT; CREATE INDEX FilesDomainIdx ON Files(domain); CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
      CREATE INDEX FilesFlagsIdx ON Files(flags);
      """
    guard sqlite3_exec(connection, indexes, nil, nil, nil) == SQLITE_OK else { throw failure(connection) }
  }

  /// A row in the table `Files`.
  private struct Row {
    static let fileFlags: Int32 = 1, directoryFlags: Int32 = 2
    let identifier: String
    let domain: String
    let path: String
    let flags: Int32
    let record: [UInt8]
  }

  private func insertRows(
    _ connection: OpaquePointer?, directory: URL, keys: ClassKeys, random: some RandomSource
  ) throws {
    var statement: OpaquePointer?
    guard
      sqlite3_prepare_v2(connection, "INSERT INTO Files VALUES (?, ?, ?, ?, ?)", -1, &statement, nil) == SQLITE_OK
    else { throw failure(connection) }
    defer { sqlite3_finalize(statement) }
    func insert(_ row: Row) throws {
      // SQLITE_TRANSIENT, which Swift does not import: SQLite copies the value.
      let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      sqlite3_bind_text(statement, 1, row.identifier, -1, transient)
      sqlite3_bind_text(statement, 2, row.domain, -1, transient)
      sqlite3_bind_text(statement, 3, row.path, -1, transient)
      sqlite3_bind_int(statement, 4, row.flags)
      sqlite3_bind_blob(statement, 5, row.record, Int32(row.record.count), transient)
      guard sqlite3_step(statement) == SQLITE_DONE, sqlite3_reset(statement) == SQLITE_OK else {
        throw failure(connection)
      }
    }
    let emptyFileRecord = try Self.record("Library/Caches/0", isFile: true).archived()
    let directoryRecord = try Self.record("Library/Caches/0", isFile: false).archived()
    // The last row is the keychain.
    for index in 0..<(rowCount - 1) {
      let domain = "AppDomain-com.example.app\(index / 5000)"
      let path = "Library/Caches/\(index % 5000 / 100)/entry-\(index % 5000)"
      let identifier = try ListedFile.fileIdentifier(domain: domain, relativePath: path)
      let isFile = index % Self.fileShare.rows < Self.fileShare.files
      var record = isFile ? emptyFileRecord : directoryRecord
      if isFile {
        let payload = directory.appending(path: "\(identifier.prefix(2))/\(identifier)")
        if payloadByteCount == 0 {
          // An empty file is one block once it is encrypted.
          try Data(count: 16).write(to: payload)
        } else {
          let contents = try SystemRandomSource().bytes(payloadByteCount)
          record = try write(contents, path: path, to: payload, keys: keys, random: random).archived()
        }
      }
      let flags = isFile ? Row.fileFlags : Row.directoryFlags
      try insert(Row(identifier: identifier, domain: domain, path: path, flags: flags, record: record))
    }
    try insert(writeKeychain(to: directory, keys: keys, random: random))
  }

  /// Stores a keychain without items, and returns its row.
  private func writeKeychain(to directory: URL, keys: ClassKeys, random: some RandomSource) throws -> Row {
    let keychain = try KeychainBackupFile(keybagUUID: nil, entries: []).serialized()
    let identifier = KeychainPayload.fileIdentifier
    let payload = directory.appending(path: "\(identifier.prefix(2))/\(identifier)")
    let path = KeychainPayload.relativePath
    let record = try write(keychain, path: path, to: payload, keys: keys, random: random)
    return Row(
      identifier: identifier, domain: KeychainPayload.domain, path: path, flags: Row.fileFlags,
      record: try record.archived())
  }

  /// Stores a file, encrypted with its own key, and returns its record.
  private func write(
    _ bytes: [UInt8], path: String, to url: URL, keys: ClassKeys, random: some RandomSource
  ) throws -> FileRecord {
    let key = try Secret(count: 32, from: random)
    let wrappedKey = try keys.wrapFileKey(key, keyClass: .fileUntilFirstUserAuthentication, random: random)
    let ciphertext = try FileCipher.encrypt(bytes, key: key)
    try Data(ciphertext).write(to: url)
    var record = Self.record(path, isFile: true)
    record.encryptionKey = try ClassWrappedKey(parsing: wrappedKey)
    record.digest = try Digest.sha1(ciphertext)
    record.size = Int64(bytes.count)
    return record
  }

  private static func record(_ path: String, isFile: Bool) -> FileRecord {
    FileRecord(
      relativePath: path, mode: isFile ? 0o100644 : 0o040755, inode: 1_234_567, lastModified: 1_700_000_000,
      lastStatusChange: 1_700_000_000, birth: 1_700_000_000, protectionClass: .fileUntilFirstUserAuthentication)
  }

  private func encrypt(_ source: URL, to target: URL, key: borrowing Secret) throws {
    guard FileManager.default.createFile(atPath: target.path(percentEncoded: false), contents: nil) else {
      throw Run.Failure(description: "cannot write \(target.path)")
    }
    let input = try FileHandle(forReadingFrom: source)
    let output = try FileHandle(forWritingTo: target)
    let encryptor = try FileEncryptor(key: key)
    while let chunk = try input.read(upToCount: 4 << 20), !chunk.isEmpty {
      try output.write(contentsOf: encryptor.update(Array(chunk)))
    }
    try output.write(contentsOf: encryptor.finish())
    try output.close()
  }

  private func failure(_ connection: OpaquePointer?) -> Run.Failure {
    Run.Failure(description: "SQLite: \(String(cString: sqlite3_errmsg(connection)))")
  }
}
