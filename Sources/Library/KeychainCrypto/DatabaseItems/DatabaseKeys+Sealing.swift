package import Basics
package import KeychainFormats

/// The random values of an encrypted database item.
struct DatabaseItemRandomValues: ~Copyable {
  let attributesKey: Secret
  let secretKey: Secret
  /// The nonces of the three boxes, 32 bytes each: for the attributes' key, the attributes and the secret.
  let nonces: (key: [UInt8], attributes: [UInt8], secret: [UInt8])
  /// The tamper check, an upper-case UUID.
  let tamperCheck: String

  init(attributesKey: consuming Secret, secretKey: consuming Secret, nonces: [[UInt8]], tamperCheck: String) {
    self.attributesKey = attributesKey
    self.secretKey = secretKey
    self.nonces = (nonces[0], nonces[1], nonces[2])
    self.tamperCheck = tamperCheck
  }

  init(from random: some RandomSource) throws(DataProtectionError) {
    let attributesKey = try Secret(count: DatabaseKeys.keyByteCount, from: random)
    let secretKey = try Secret(count: DatabaseKeys.keyByteCount, from: random)
    var nonces: [[UInt8]] = []
    for _ in 0..<3 { nonces.append(try random.bytes(ArchivedBox.nonceByteCount)) }
    let tamperCheck = UUIDText.uppercase(try random.bytes(16)) ?? ""
    self.init(attributesKey: attributesKey, secretKey: secretKey, nonces: nonces, tamperCheck: tamperCheck)
  }
}

/// The format in which a database stores the key of a new item's secret or the metadata key of a class.
package enum DatabaseKeyWrapping: Sendable, Hashable {
  /// Not encrypted, as in a Simulator.
  case simulator(SimulatorKeyStore)
  /// Wrapped with the key of the item's class.
  case classKey
}

extension DatabaseKeys {
  /// Encrypts an item for its own protection class, with new keys for its attributes and its secret. The class's
  /// metadata key encrypts the attributes' key; `wrapping` determines how the secret's key is stored.
  ///
  /// The item's digest is computed again. The class is written without a key generation.
  ///
  /// - Parameters:
  ///   - item: The decrypted item.
  ///   - accessControl: The access control. If it is `nil`, one is created that contains only the class.
  ///   - version: The version of the blob.
  ///   - wrapping: The format in which the secret's key is stored.
  ///   - random: The source of keys, nonces and the tamper check.
  /// - Throws:
  ///   - `.malformed` for an item without a protection class, with a different class in its access control, or with a
  ///     value that DER cannot represent.
  ///   - `.noClassKey` if a key of the class is missing.
  ///   - `.keyUnwrapFailed` if a key of the class cannot be unwrapped.
  package func seal(
    _ item: KeychainItem, accessControl: ItemAccessControl? = nil, version: DatabaseItemBlob.Version = .v8,
    wrapping: DatabaseKeyWrapping, random: some RandomSource = SystemRandomSource()
  ) throws(ItemCryptoError) -> DatabaseItemBlob {
    let randomValues: DatabaseItemRandomValues
    do throws(DataProtectionError) {
      randomValues = try DatabaseItemRandomValues(from: random)
    } catch {
      throw ItemCryptoError(.failed(error))
    }
    return try seal(item, accessControl: accessControl, version: version, wrapping: wrapping, randomValues)
  }

  /// Encrypts an item with given random values.
  ///
  /// - Parameter generation: The key generation to write into the blob's class number. Keyhaul itself writes 0.
  func seal(
    _ item: KeychainItem, accessControl: ItemAccessControl?, version: DatabaseItemBlob.Version,
    wrapping: DatabaseKeyWrapping, generation: UInt32 = 0, _ randomValues: borrowing DatabaseItemRandomValues
  ) throws(ItemCryptoError) -> DatabaseItemBlob {
    guard let protection = item.protection else { throw ItemCryptoError(.malformed(.noProtection)) }
    let keyClass = protection.keyClass
    let accessControl = accessControl ?? ItemAccessControl(protection: protection)
    try Self.checkClass(of: accessControl, equals: protection)
    let digest = try item.digest()
    do throws(ItemFault) {
      let metadataKey = try sealingKey(of: keyClass)
      let tamperCheck = randomValues.tamperCheck
      let attributes = try attributesPlaintext(
        of: item, digest: digest, accessControl: accessControl, tamperCheck: tamperCheck)
      let secret = try secretPlaintext(of: item, tamperCheck: tamperCheck)
      let attributesKey = randomValues.attributesKey.withBytes { SensitiveBytes(copying: $0) }
      let attributesKeyBox = try box(attributesKey, key: metadataKey, nonce: randomValues.nonces.key)
      let attributesBox = try box(
        attributes, key: randomValues.attributesKey, nonce: randomValues.nonces.attributes)
      let secretBox = try box(secret, key: randomValues.secretKey, nonce: randomValues.nonces.secret)
      let secretKeyWrap = ItemKeyWrap(wrappedKey: try wrap(randomValues.secretKey, keyClass: keyClass, wrapping))
      return try convertingFormatError { () throws(FormatError) in
        try DatabaseItemBlob(
          version: version, keyClass: KeyClass(rawValue: keyClass.rawValue | generation << 4),
          attributes: .init(box: attributesBox, wrappedKey: attributesKeyBox, tamperCheck: tamperCheck),
          secret: .init(box: secretBox, keyWrap: secretKeyWrap, tamperCheck: tamperCheck))
      }
    } catch {
      throw ItemCryptoError(error, keyClass: keyClass)
    }
  }

  /// Checks the class in an access control. The access control of a token's item contains no class.
  private static func checkClass(
    of accessControl: ItemAccessControl, equals protection: ProtectionClass
  ) throws(ItemCryptoError) {
    guard let protectionCode = accessControl.protectionCode, protectionCode != protection.rawValue else { return }
    throw ItemCryptoError(
      .malformed(FormatError(.accessControl, .unencodable, "its class differs from the item's")),
      keyClass: protection.keyClass)
  }

  private func attributesPlaintext(
    of item: KeychainItem, digest: [UInt8], accessControl: ItemAccessControl, tamperCheck: String
  ) throws(ItemFault) -> SensitiveBytes {
    try convertingFormatError { () throws(FormatError) in
      var attributes = item.boxedAttributes
      attributes[.digest] = .data(digest)
      attributes[.tamperCheck] = .string(tamperCheck)
      attributes[.secAccessControl] = .data(try accessControl.serialized())
      return try KeychainItem.boxDictionary(attributes)
    }
  }

  /// Returns the padded contents of the secret's box.
  private func secretPlaintext(of item: KeychainItem, tamperCheck: String) throws(ItemFault) -> SensitiveBytes {
    let dictionary = try convertingFormatError { () throws(FormatError) in
      try KeychainItem.boxDictionary([.tamperCheck: .string(tamperCheck)], secrets: item.secrets)
    }
    return Self.padded(dictionary)
  }

  /// Wraps a metadata key for the column `data` of the table `metadatakeys`, or the key of an item's secret.
  ///
  /// - Throws: `.noClassKey` if the key of the class is missing.
  package func wrap(
    _ key: borrowing Secret, for protection: ProtectionClass, _ wrapping: DatabaseKeyWrapping
  ) throws(ItemCryptoError) -> SensitiveBytes {
    do throws(ItemFault) {
      return try wrap(key, keyClass: protection.keyClass, wrapping)
    } catch {
      throw ItemCryptoError(error, keyClass: protection.keyClass)
    }
  }

  private func wrap(
    _ key: borrowing Secret, keyClass: KeyClass, _ wrapping: DatabaseKeyWrapping
  ) throws(ItemFault) -> SensitiveBytes {
    switch wrapping {
    case .simulator(let store): return store.wrap(key)
    case .classKey:
      guard let classKey = classKeys[keyClass] else { throw .noClassKey }
      do throws(DataProtectionError) {
        return SensitiveBytes(copying: try KeyWrap.wrap(key, with: classKey.secret))
      } catch {
        throw .failed(error)
      }
    }
  }

  /// Returns a class's metadata key, which encrypts the attributes' keys.
  private func sealingKey(of keyClass: KeyClass) throws(ItemFault) -> Secret {
    do throws(DatabaseItemError) {
      return try metadataKey(of: keyClass).key.copy()
    } catch {
      switch error {
      case .failed(let failure): throw .failed(failure)
      case .fault(let fault): throw fault.verdict == .noClassKey ? .noClassKey : .keyUnwrapFailed
      }
    }
  }

  /// Encrypts a plaintext and returns the archive of the box that contains it.
  private func box(
    _ plaintext: SensitiveBytes, key: borrowing Secret, nonce: [UInt8]
  ) throws(ItemFault) -> [UInt8] {
    let sealed: Sealed
    do throws(DataProtectionError) {
      sealed = try withCipher { (cipher) throws(DataProtectionError) in
        try cipher.seal(plaintext, key: key, nonce: nonce)
      }
    } catch {
      throw .failed(error)
    }
    return try convertingFormatError { () throws(FormatError) in
      try ArchivedBox(nonce: nonce, ciphertext: sealed.ciphertext, tag: sealed.tag).archive()
    }
  }

  /// Returns the padded bytes. The padding has 1 to 20 bytes: 20 if the length is a multiple of 20 already.
  static func padded(_ bytes: SensitiveBytes) -> SensitiveBytes {
    let count = paddedByteCount - bytes.count % paddedByteCount
    return SensitiveBytes(count: bytes.count + count) { target in
      bytes.withBytes { target.copyMemory(from: $0) }
      for index in bytes.count..<target.count { target[index] = UInt8(count) }
    }
  }
}
