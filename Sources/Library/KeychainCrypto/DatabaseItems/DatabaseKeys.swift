package import Basics
package import KeychainFormats

/// The keys for a database's items: from the database itself for a Simulator, or from the keybag or an extraction of a
/// device.
///
/// Several threads may use one object; its ciphers serve one at a time.
package final class DatabaseKeys: Sendable {
  /// The key of a class for decrypting the keys of attributes.
  enum MetadataKey: Sendable {
    case wrapped(SensitiveBytes)
    case unwrapped(ClassKeys.WrappingKey)
  }

  let metadataKeys: [KeyClass: MetadataKey]
  let classKeys: [KeyClass: ClassKeys.WrappingKey]
  private let cipher: Locked<DatabaseItemCipher>

  /// The size of a class or item key, in bytes.
  static let keyByteCount = 32

  /// Creates a set of keys, which are copied to memory that is wiped.
  ///
  /// - Parameters:
  ///   - wrappedMetadataKeys: The column `data` of the table `metadatakeys` by class. An empty value is ignored.
  ///   - metadataKeys: The same keys, unwrapped, 32 bytes each; these take precedence over wrapped ones.
  ///   - classKeys: The keys of a device's own keybag by class, 32 bytes each; not the keys of a backup's
  ///     keybag.
  /// - Throws: `.malformed` for a key of another length.
  package init(
    wrappedMetadataKeys: [KeyClass: SensitiveBytes] = [:], metadataKeys: [KeyClass: SensitiveBytes] = [:],
    classKeys: [KeyClass: SensitiveBytes] = [:]
  ) throws(DataProtectionError) {
    func checked(_ keys: [KeyClass: SensitiveBytes]) throws(DataProtectionError) -> [KeyClass: ClassKeys.WrappingKey] {
      var result: [KeyClass: ClassKeys.WrappingKey] = [:]
      for (keyClass, key) in keys {
        guard key.count == Self.keyByteCount else {
          throw DataProtectionError(
            .malformed, "the key of class \(keyClass.rawValue) has \(key.count) bytes, not \(Self.keyByteCount)")
        }
        result[keyClass] = ClassKeys.WrappingKey(key.withBytes { Secret(copying: $0) })
      }
      return result
    }
    let wrapped = wrappedMetadataKeys.filter { !$0.value.isEmpty }.mapValues(MetadataKey.wrapped)
    let unwrapped = try checked(metadataKeys).mapValues(MetadataKey.unwrapped)
    let classKeys = try checked(classKeys)
    let cipher = try DatabaseItemCipher()
    self.metadataKeys = wrapped.merging(unwrapped) { _, unwrapped in unwrapped }
    self.classKeys = classKeys
    self.cipher = Locked(cipher)
  }

  /// Calls a closure with the ciphers, one caller at a time.
  func withCipher<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing DatabaseItemCipher) throws(Failure) -> sending Result
  ) throws(Failure) -> Result {
    try cipher.withLock { (cipher) throws(Failure) in try body(cipher) }
  }
}
