package import Basics
package import KeychainFormats

/// The keys for a database's items: from the database itself for a Simulator, or from the keybag or an extraction of a
/// device.
///
/// Several threads may use one object, but only one thread at a time uses its ciphers.
package final class DatabaseKeys: Sendable {
  /// A class's metadata key, which decrypts the attributes' keys.
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
  ///   - metadataKeys: The unwrapped metadata keys by class, 32 bytes each. They take precedence over the wrapped keys.
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

/// An error in decrypting an item: a fault of the item, or a failure that the item did not cause.
enum DatabaseItemError: Error {
  case fault(DatabaseItemFault)
  case failed(DataProtectionError)

  init(_ verdict: DatabaseItemVerdict, _ step: DatabaseItemFault.Step, _ reason: String) {
    self = .fault(DatabaseItemFault(verdict, step, reason))
  }
}

/// Calls a closure, and converts a format error to a fault of the item in the given step.
func convertingFormatError<Result>(
  at step: DatabaseItemFault.Step, _ body: () throws(FormatError) -> Result
) throws(DatabaseItemError) -> Result {
  do throws(FormatError) { return try body() } catch { throw .fault(DatabaseItemFault(error, step)) }
}

/// A Simulator's key store, which "wraps" a key by appending eight equal bytes.
///
/// Source: Apple `SecAKSObjCWrappers.m`, `mockaks.m` (iOS 13 and later) and `SecKeybagSupport.c` (earlier). The later
/// format was seen in 200 rows that Apple's code wrote. No database of a real Simulator was available.
package enum SimulatorKeyStore: Sendable, Hashable, CaseIterable {
  /// Simulators up to iOS 12.
  case upToIOS12
  /// Simulators since iOS 13, which reject the earlier format.
  case sinceIOS13

  static let padByteCount = 8

  var padByte: UInt8 {
    switch self {
    case .upToIOS12: 0x08
    case .sinceIOS13: 0xFF
    }
  }

  /// Detects the key store that wrapped a key by the appended bytes. Returns `nil` if no Simulator's key store wrapped
  /// the key. A device's wrap looks like a Simulator's once in 2^63 cases.
  package init?(detectedIn wrapped: SensitiveBytes) {
    let store = wrapped.withBytes { bytes -> SimulatorKeyStore? in
      guard bytes.count >= Self.padByteCount else { return nil }
      return Self.allCases.first { store in bytes.suffix(Self.padByteCount).allSatisfy { $0 == store.padByte } }
    }
    guard let store else { return nil }
    self = store
  }

  func wrap(_ key: borrowing Secret) -> SensitiveBytes {
    key.withBytes { bytes in
      SensitiveBytes(count: bytes.count + Self.padByteCount) { target in
        target.copyMemory(from: bytes)
        for index in bytes.count..<target.count { target[index] = padByte }
      }
    }
  }
}

/// Decrypts items of earlier versions in the same tables. They have one box for attributes and secret.
extension DatabaseKeys {
  /// Decrypts an item of version 2 or 3. A valid item of version 6 is reported as access-controlled, and an item of any
  /// other version as unsupported.
  func openOlder(_ bytes: [UInt8], version: UInt32, kind: ItemKind) throws(DataProtectionError) -> DecryptedDatabaseItem
  {
    var result = DecryptedDatabaseItem()
    do throws(DatabaseItemError) {
      if version == AccessControlledItemBlob.version, (try? AccessControlledItemBlob(parsing: bytes)) != nil {
        throw DatabaseItemError(.accessControl, .secretKey, "only the item's own device can decrypt it")
      }
      let blob: ItemBlob
      do throws(FormatError) {
        blob = try ItemBlob(parsing: bytes)
      } catch {
        throw .fault(DatabaseItemFault(error, error.code == .unsupportedVersion ? .version : .messages))
      }
      result.keyClass = blob.keyClass
      let item = try item(in: blob, kind: kind, &result)
      result.content = .open(item)
    } catch {
      switch error {
      case .fault(let fault): result.fault = fault
      case .failed(let failure): throw failure
      }
    }
    return result
  }

  private func item(
    in blob: ItemBlob, kind: ItemKind, _ result: inout DecryptedDatabaseItem
  ) throws(DatabaseItemError) -> KeychainItem {
    let keyClass = blob.keyClass.withoutGeneration
    guard let blobClass = ProtectionClass(keyClass: keyClass) else {
      throw DatabaseItemError(.malformed, .messages, "its class \(blob.keyClass.rawValue) is not a protection class")
    }
    let unwrapped = try unwrap(SensitiveBytes(copying: blob.wrappedKey), keyClass: keyClass, at: .secretKey)
    let plaintext = try plaintext(of: blob, key: unwrapped.key)
    let item = try convertingFormatError(at: .secretDictionary) { () throws(FormatError) in
      switch blob.version {
      case .v2: try KeychainItem(plistDictionary: plaintext, kind: kind)
      case .v3: try KeychainItem(derDictionary: plaintext, kind: kind)
      }
    }
    guard item.protection == blobClass else {
      throw DatabaseItemError(.malformed, .classes, "its pdmn does not name its class, \(keyClass.rawValue)")
    }
    if unwrapped.store != nil, blob.keyClass.generation != 0 { result.findings.insert(.generationInSimulator) }
    return item
  }

  private func plaintext(of blob: ItemBlob, key: borrowing Secret) throws(DatabaseItemError) -> SensitiveBytes {
    let sealed = Sealed(ciphertext: blob.ciphertext, tag: blob.tag)
    let plaintext: SensitiveBytes?
    do throws(DataProtectionError) {
      plaintext = try withCipher { (cipher) throws(DataProtectionError) in
        guard blob.hasStaticIV else { return try cipher.olderItems.openWithEmptyNonce(sealed, key: key) }
        return try cipher.olderItems.openWithNonce(
          ItemEncryptionMode.staticNonce, header: blob.authenticatedHeader, sealed, key: key)
      }
    } catch {
      throw .failed(error)
    }
    guard let plaintext else {
      throw DatabaseItemError(.tagMismatch, .secretBox, "its authentication tag does not match its bytes")
    }
    return plaintext
  }
}
