import Basics
import KeychainFormats

/// An unwrapped key, with the key store that wrapped it.
struct UnwrappedKey: ~Copyable {
  let key: Secret
  /// The Simulator's key store that wrapped the key, or `nil` if no Simulator wrapped it.
  let store: SimulatorKeyStore?
}

extension DatabaseKeys {
  /// The size of the smallest key wrap that RFC 3394 allows.
  private static let minimumWrapByteCount = 24
  private static let derSetTag: UInt8 = 0x31

  /// Returns a class's metadata key, which decrypts the attributes' keys.
  func metadataKey(of keyClass: KeyClass) throws(DatabaseItemError) -> UnwrappedKey {
    switch metadataKeys[keyClass] {
    case nil:
      throw DatabaseItemError(
        .noClassKey, .metadataClassKey, "there is no key for attributes of class \(keyClass.rawValue)")
    case .unwrapped(let key): return UnwrappedKey(key: key.secret.copy(), store: nil)
    case .wrapped(let wrapped): return try unwrap(wrapped, keyClass: keyClass, at: .metadataClassKey)
    }
  }

  /// Returns the key for decrypting an item's secret.
  func secretKey(of blob: DatabaseItemBlob) throws(DatabaseItemError) -> UnwrappedKey {
    guard let wrap = blob.secret.keyWrap else {
      throw DatabaseItemError(.noClassKey, .secretKey, "the key of the secret is missing")
    }
    // A persona's key is a DER dictionary (a SET) instead of a wrapped key.
    let isPersonaKey =
      wrap.wrappedKey.count != Self.keyByteCount + SimulatorKeyStore.padByteCount
      && wrap.wrappedKey.withBytes { $0.first == Self.derSetTag }
    switch (wrap.type, wrap.referenceKey) {
    case (ItemKeyWrap.classWrap, nil) where isPersonaKey:
      return UnwrappedKey(key: try openPersonaKey(wrap.wrappedKey), store: nil)
    case (ItemKeyWrap.classWrap, nil):
      return try unwrap(wrap.wrappedKey, keyClass: blob.keyClass.withoutGeneration, at: .secretKey)
    case (ItemKeyWrap.referenceWrap, let key?):
      let sealed = wrap.wrappedKey.withBytes { Array($0) }
      return UnwrappedKey(key: try open(sealed, underReference: key), store: nil)
    default:
      throw DatabaseItemError(
        .malformed, .secretKey,
        "a wrap of type \(wrap.type) \(wrap.referenceKey == nil ? "without" : "with") a reference key")
    }
  }

  /// Decrypts a persona's key: a dictionary with the encrypted key (`d1`) and its reference key (`d2`).
  private func openPersonaKey(_ encoded: SensitiveBytes) throws(DatabaseItemError) -> Secret {
    let dictionary = try convertingFormatError(at: .secretKey) { () throws(FormatError) in
      try encoded.withBytes { (bytes) throws(FormatError) in try DERPropertyList.decode(bytes) }
    }
    guard let sealed = dictionary.dictionaryValue?["d1"]?.dataValue,
      let reference = dictionary.dictionaryValue?["d2"]?.dataValue
    else { throw DatabaseItemError(.malformed, .secretKey, "a persona's key is not a dictionary with d1 and d2") }
    return try open(sealed, underReference: reference)
  }

  /// Decrypts a key with a reference key. Only the key store that created the reference key can use it. The mock key
  /// store's reference key is an exception, because it is public.
  private func open(_ sealed: [UInt8], underReference reference: [UInt8]) throws(DatabaseItemError) -> Secret {
    guard MockReferenceKey.matches(reference) else {
      throw DatabaseItemError(.accessControl, .secretKey, "only the item's own device can unwrap its key")
    }
    let box = try convertingFormatError(at: .secretKey) { () throws(FormatError) in try ArchivedBox(archive: sealed) }
    return try key(in: box, under: Secret(copying: MockReferenceKey.key), at: .secretKey)
  }

  /// Returns the key of 32 bytes in a box.
  func key(
    in box: ArchivedBox, under key: borrowing Secret, at step: DatabaseItemFault.Step
  ) throws(DatabaseItemError) -> Secret {
    let plaintext = try open(box, key: key, at: step)
    guard plaintext.count == Self.keyByteCount else {
      throw DatabaseItemError(.malformed, step, "it holds \(plaintext.count) bytes; a key has \(Self.keyByteCount)")
    }
    return plaintext.withBytes { Secret(copying: $0) }
  }

  func open(
    _ box: ArchivedBox, key: borrowing Secret, at step: DatabaseItemFault.Step
  ) throws(DatabaseItemError) -> SensitiveBytes {
    let plaintext: SensitiveBytes?
    do throws(DataProtectionError) {
      plaintext = try withCipher { (cipher) throws(DataProtectionError) in try cipher.open(box, key: key) }
    } catch {
      throw .failed(error)
    }
    guard let plaintext else {
      throw DatabaseItemError(.tagMismatch, step, "its authentication tag does not match its bytes")
    }
    return plaintext
  }

  /// Unwraps a key that a Simulator or a class key has wrapped.
  func unwrap(
    _ wrapped: SensitiveBytes, keyClass: KeyClass, at step: DatabaseItemFault.Step
  ) throws(DatabaseItemError) -> UnwrappedKey {
    guard wrapped.count >= Self.minimumWrapByteCount else {
      throw DatabaseItemError(.malformed, step, "a wrapped key has \(wrapped.count) bytes")
    }
    let store = SimulatorKeyStore(detectedIn: wrapped)
    let byteCount = wrapped.count - SimulatorKeyStore.padByteCount
    // Without a key for unwrapping, the missing class key is reported instead of the length.
    let canUnwrap = store != nil || classKeys[keyClass] != nil
    guard !canUnwrap || byteCount == Self.keyByteCount else {
      throw DatabaseItemError(.malformed, step, "a wrapped key has \(wrapped.count) bytes, not 40")
    }
    if let store {
      let key = wrapped.withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0.prefix(byteCount))) }
      return UnwrappedKey(key: key, store: store)
    }
    guard let classKey = classKeys[keyClass] else {
      throw DatabaseItemError(
        .noClassKey, step, "the key is wrapped by a device, and the key of class \(keyClass.rawValue) is missing")
    }
    let key: Secret?
    do throws(DataProtectionError) {
      key = try classKey.unwrap(wrapped.withBytes { Array($0) })
    } catch {
      throw .failed(error)
    }
    guard let key else {
      throw DatabaseItemError(.tagMismatch, step, "the key of class \(keyClass.rawValue) does not unwrap it")
    }
    return UnwrappedKey(key: key, store: nil)
  }
}
