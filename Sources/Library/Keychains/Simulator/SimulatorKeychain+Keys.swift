import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

extension SimulatorKeychain {
  /// Makes the key of a class that no row has needed yet. One that is there is never replaced: it opens other rows.
  func provideKey(of protection: ProtectionClass) throws(KeychainDatabaseError) {
    let keyClass = protection.keyClass
    guard wrappedMetadataKeys[keyClass]?.isEmpty ?? true else { return }
    let key = try Self.working { [random] () throws(DataProtectionError) in
      SensitiveBytes(copying: try random.bytes(32))
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
    keys = try Self.working { [wrappedMetadataKeys] () throws(DataProtectionError) in
      try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys)
    }
  }

  private func wrapped(
    _ key: SensitiveBytes, for protection: ProtectionClass
  ) throws(KeychainDatabaseError) -> SensitiveBytes {
    let secret = key.withBytes { Secret(copying: $0) }
    do throws(ItemSealError) {
      return try keys.wrap(secret, for: protection, .simulator(store))
    } catch {
      throw KeychainDatabaseError(.failed, error.reason)
    }
  }
}
