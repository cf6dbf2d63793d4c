import Basics
import KeychainCrypto
import KeychainFormats
import Keychains

/// The database of Proton Authenticator: a SwiftData store with a row for each account.
///
/// A row names a key in the keychain, a generic password of the service `me.proton.authenticator`. The key is stored as
/// JSON: a string with the 32 bytes in Base64. With it, `SealedBox` decrypts the row's data to an `AuthenticatorEntry`.
/// Sources: protonpass/ios-authenticator, `EncryptedEntryEntity.swift`, `EncryptionService.swift` and
/// `KeychainService.swift`; protonpass/proton-pass-common, `proton-authenticator/src/crypto.rs`.
enum ProtonAuthenticatorStore {
  /// A row of the database.
  struct Row: Sendable {
    /// The account of the keychain item that contains the key.
    let keyName: String
    /// The encrypted account.
    let box: [UInt8]
  }

  static let service = "me.proton.authenticator"
  /// The maximum number of rows. The app accepts files of 10 MB with many entries.
  static let maximumRowCount = 10_000
  /// The maximum size of an encrypted account in bytes.
  static let maximumEntryByteCount = 64 << 10
  private static let table = "ZENCRYPTEDENTRYENTITY"
  /// The additional authenticated data of each account.
  private static let authenticatedData = Array("entrycontent".utf8)

  /// Returns the rows in the order in which the app shows the accounts.
  ///
  /// - Throws: `.damaged` if the database has no table of accounts or a row has no encrypted account; `.overLimit` if there
  ///   are more than `maximumRowCount` rows.
  static func rows(of database: AppDatabase) throws(KeyhaulError) -> [Row] {
    guard let columns = try database.columns(of: table), columns.isSuperset(of: ["ZENCRYPTEDDATA", "ZKEYID"]) else {
      throw KeyhaulError(.damaged, "its database has no table of accounts")
    }
    let order = columns.contains("ZORDER") ? "ZORDER, rowid" : "rowid"
    var rows: [Row] = []
    try database.forEachRow("SELECT ZKEYID, ZENCRYPTEDDATA FROM main.\(table) ORDER BY \(order)") {
      (row) throws(KeyhaulError) in
      guard rows.count < maximumRowCount else {
        throw KeyhaulError(.overLimit, "its database has more than \(maximumRowCount) accounts")
      }
      guard let box = row.data(1), box.count <= maximumEntryByteCount else {
        throw KeyhaulError(.damaged, "a row of its database has no encrypted account")
      }
      rows.append(Row(keyName: row.text(0) ?? "", box: box))
    }
    return rows
  }

  /// Returns the keys that the rows need, by their names. Keys in items that cannot be decrypted are missing.
  static func keys(
    for rows: [Row], among items: BackupItemReader
  ) throws(KeyhaulError) -> [String: SensitiveBytes] {
    let keyNames = Set(rows.map(\.keyName))
    var keys: [String: SensitiveBytes] = [:]
    func unchanged(_ error: KeyhaulError) -> KeyhaulError { error }
    try items.forEachChunk(translating: unchanged) { (chunk) throws(KeyhaulError) in
      for item in chunk.compactMap(\.item) where item.kind == .genericPassword {
        guard item[.service]?.stringValue == service, let name = item[.account]?.stringValue, keyNames.contains(name),
          let key = item.secret.flatMap(key)
        else { continue }
        keys[name] = key
      }
    }
    return keys
  }

  /// Returns the key in an item's secret, or `nil` if there is none. The secret is either the 32 bytes, or a JSON string
  /// that contains them in Base64, with slashes that may be escaped.
  static func key(in secret: SensitiveBytes) -> SensitiveBytes? {
    if secret.count == SealedBox.keySize { return secret }
    return secret.withBytes { bytes in
      let quote = UInt8(ascii: "\"")
      guard bytes.count >= 2, bytes.first == quote, bytes.last == quote else { return nil }
      return Base64Digits.sensitiveBytes(of: bytes.dropFirst().dropLast().lazy.filter { $0 != UInt8(ascii: "\\") })
    }
  }

  /// Decrypts a row.
  ///
  /// - Returns: The account's `otpauth` address, or `nil` if the key does not match or the content is not an account.
  static func address(of row: Row, key: SensitiveBytes) throws(KeyhaulError) -> SensitiveBytes? {
    try translatingErrors(in: "an account") { () throws(DataProtectionError) in
      try SealedBox.open(row.box, key: key, authenticating: authenticatedData)?.withBytes(AuthenticatorEntry.address)
    }
  }
}
