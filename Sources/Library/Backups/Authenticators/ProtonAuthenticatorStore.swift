import Basics
import KeychainCrypto
import KeychainFormats
import Keychains

/// The database of Proton Authenticator: a SwiftData store with a row for each account.
///
/// A row names a key in the keychain, a generic password of the service `me.proton.authenticator`. The key is stored as
/// JSON: the 32 bytes in Base64 as a text. With it, `SealedBox` decrypts the row's data to an `AuthenticatorEntry`.
/// Sources: protonpass/ios-authenticator, `EncryptedEntryEntity.swift`, `EncryptionService.swift` and
/// `KeychainService.swift`; protonpass/proton-pass-common, `proton-authenticator/src/crypto.rs`.
enum ProtonAuthenticatorStore {
  /// A row of the database.
  struct Row: Sendable {
    /// The account of the keychain item that contains the key.
    let keyName: String
    let box: [UInt8]
  }

  static let service = "me.proton.authenticator"
  /// The most rows, and the most bytes of an entry. The app accepts files of 10 MB with many entries.
  static let maximumRowCount = 10_000
  static let maximumEntryByteCount = 64 << 10
  private static let table = "ZENCRYPTEDENTRYENTITY"
  private static let authenticated = Array("entrycontent".utf8)

  /// Returns the accounts in the order in which the app shows them.
  ///
  /// - Throws: `.damaged` if the database has other tables, `.overLimit`.
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
    let wanted = Set(rows.map(\.keyName))
    var keys: [String: SensitiveBytes] = [:]
    func same(_ error: KeyhaulError) -> KeyhaulError { error }
    try items.forEachPortion(translating: same) { (portion) throws(KeyhaulError) in
      for item in portion.compactMap(\.item) where item.kind == .genericPassword {
        guard item[.service]?.stringValue == service, let name = item[.account]?.stringValue, wanted.contains(name),
          let key = item.secret.flatMap(key)
        else { continue }
        keys[name] = key
      }
    }
    return keys
  }

  /// The key in an item's secret: a JSON text in Base64, in which a slash may be escaped, or the bytes alone.
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
  /// - Returns: The account's `otpauth` address; `nil` if the key does not fit, or if the content is not an account.
  static func address(of row: Row, key: SensitiveBytes) throws(KeyhaulError) -> SensitiveBytes? {
    try explained("an account") { () throws(DataProtectionError) in
      try SealedBox.open(row.box, key: key, authenticating: authenticated)?.withBytes(AuthenticatorEntry.address)
    }
  }
}
