import Basics
import KeychainCrypto
import KeychainFormats

extension SimulatorKeychain {
  /// Creates the key of a class if the database has none. An existing key is never replaced, because other rows need
  /// it.
  func createKeyIfNeeded(of protection: ProtectionClass) throws(KeyhaulError) {
    let keyClass = protection.keyClass
    guard wrappedMetadataKeys[keyClass]?.isEmpty ?? true else { return }
    let key = try Self.translatingErrors { [random] () throws(DataProtectionError) in
      SensitiveBytes(copying: try random.bytes(Self.metadataKeyByteCount))
    }
    let wrapped = try wrapped(key, for: protection)
    let name = ColumnValue.text(String(keyClass.rawValue))
    let data = wrapped.withBytes { ColumnValue.blob(Array($0)) }
    if namesActualClasses {
      try database.run(
        "INSERT OR REPLACE INTO main.metadatakeys(keyclass, actualKeyclass, data) VALUES (?, ?, ?)", [name, name, data])
    } else {
      try database.run("INSERT OR REPLACE INTO main.metadatakeys(keyclass, data) VALUES (?, ?)", [name, data])
    }
    wrappedMetadataKeys[keyClass] = wrapped
    keys = try Self.translatingErrors { [wrappedMetadataKeys] () throws(DataProtectionError) in
      try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys)
    }
  }

  /// The length of the key that encrypts the attributes of a class's items.
  private static let metadataKeyByteCount = 32

  private func wrapped(
    _ key: SensitiveBytes, for protection: ProtectionClass
  ) throws(KeyhaulError) -> SensitiveBytes {
    let secret = key.withBytes { Secret(copying: $0) }
    do throws(ItemCryptoError) {
      return try keys.wrap(secret, for: protection, .simulator(keyStore))
    } catch {
      throw KeyhaulError(.databaseFailed, error.reason)
    }
  }
}
