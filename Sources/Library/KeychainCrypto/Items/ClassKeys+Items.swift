package import Basics
package import KeychainFormats

extension ClassKeys {
  /// Decrypts an item's blob and returns its plaintext, a property list (v2) or a DER dictionary (v3).
  package func open(
    _ blob: ItemBlob, numbering: ClassNumbering = .exact
  ) throws(ItemCryptoError) -> SensitiveBytes {
    let keyClass = numbering.keyClass(from: blob.keyClass)
    do throws(ItemFault) {
      let key = try unwrap(blob.wrappedKey, keyClass: keyClass)
      let header = blob.hasStaticIV ? blob.authenticatedHeader : nil
      return try open(Sealed(ciphertext: blob.ciphertext, tag: blob.tag), header: header, key: key)
    } catch {
      throw ItemCryptoError(error, keyClass: keyClass)
    }
  }

  /// Decrypts an item's blob and reads the item.
  ///
  /// - Throws: The errors of decryption. Also `.malformed` for bytes after the dictionary, or if the item's own `pdmn`
  ///   differs from the blob's class, as in Apple's importer.
  package func open(
    _ blob: ItemBlob, kind: ItemKind, numbering: ClassNumbering = .exact
  ) throws(ItemCryptoError) -> KeychainItem {
    try open(blob, kind: kind, numbering: numbering, packs: true)
  }

  /// Decrypts an item. With `packs`, the item is also packed (`KeychainItem.pack()`), because it will stay in memory.
  package func open(
    _ blob: ItemBlob, kind: ItemKind, numbering: ClassNumbering = .exact, packs: Bool
  ) throws(ItemCryptoError) -> KeychainItem {
    try Self.item(
      in: try open(blob, numbering: numbering), blob.version, kind: kind,
      keyClass: numbering.keyClass(from: blob.keyClass), packs: packs)
  }

  /// Reads the item in a plaintext, with the same checks as `open`.
  package static func item(
    in plaintext: SensitiveBytes, _ version: ItemBlob.Version = .v3, kind: ItemKind, keyClass: KeyClass,
    packs: Bool = true
  ) throws(ItemCryptoError) -> KeychainItem {
    do throws(FormatError) {
      let item = try plaintext.withBytes { (bytes) throws(FormatError) in
        switch version {
        case .v2: try KeychainItem(plistDictionary: bytes, kind: kind)
        case .v3: try KeychainItem(derDictionary: bytes, kind: kind, packs: packs)
        }
      }
      guard item.protection?.keyClass == keyClass else {
        throw FormatError(.item, .malformed, "its pdmn does not name the class of its blob, \(keyClass.rawValue)")
      }
      return item
    } catch {
      throw ItemCryptoError(.malformed(error), keyClass: keyClass)
    }
  }

  /// Reads a blob and decrypts the item in it.
  package func open(
    blob bytes: [UInt8], kind: ItemKind, numbering: ClassNumbering = .exact
  ) throws(ItemCryptoError) -> KeychainItem {
    let blob: ItemBlob
    do throws(FormatError) {
      blob = try ItemBlob(parsing: bytes)
    } catch {
      if error.code == .unsupportedVersion, let number = ItemBlob.versionNumber(of: bytes) {
        throw ItemCryptoError(.unsupportedVersion(number))
      }
      throw ItemCryptoError(.malformed(error))
    }
    return try open(blob, kind: kind, numbering: numbering)
  }

  /// Encrypts an item for its own protection class, with a new item key.
  ///
  /// - Throws: `.malformed` for an item without a protection class or with a value that DER cannot represent.
  package func seal(
    _ item: KeychainItem, as mode: ItemEncryptionMode, random: some RandomSource = SystemRandomSource()
  ) throws(ItemCryptoError) -> ItemBlob {
    let (plaintext, keyClass) = try Self.plaintext(of: item)
    return try seal(plaintext, keyClass: keyClass, as: mode, random: random)
  }

  /// Returns the plaintext that `seal` would encrypt, and that `open` would return later.
  ///
  /// - Throws: The errors of `seal`, also if the key of the item's class is not available.
  package func plaintextToSeal(
    of item: KeychainItem
  ) throws(ItemCryptoError) -> (plaintext: SensitiveBytes, keyClass: KeyClass) {
    let (plaintext, _) = try Self.plaintext(of: item)
    return (plaintext, try classToSeal(for: item))
  }

  /// Returns the class for which `seal` would encrypt an item, without creating the plaintext.
  ///
  /// - Throws: `.malformed` if the item has no protection class; the errors of `seal` if the key of its class is not
  ///   available.
  package func classToSeal(for item: KeychainItem) throws(ItemCryptoError) -> KeyClass {
    guard let keyClass = item.protection?.keyClass else { throw ItemCryptoError(.malformed(.noProtection)) }
    do throws(ItemFault) { try requireKey(of: keyClass) } catch { throw ItemCryptoError(error, keyClass: keyClass) }
    return keyClass
  }

  private static func plaintext(of item: KeychainItem) throws(ItemCryptoError) -> (
    plaintext: SensitiveBytes, keyClass: KeyClass
  ) {
    guard let protection = item.protection else { throw ItemCryptoError(.malformed(.noProtection)) }
    do throws(FormatError) {
      return (try item.derDictionary(), protection.keyClass)
    } catch {
      throw ItemCryptoError(.malformed(error), keyClass: protection.keyClass)
    }
  }

  /// Encrypts the DER dictionary of an item (version 3).
  package func seal(
    _ plaintext: SensitiveBytes, keyClass: KeyClass, as mode: ItemEncryptionMode,
    random: some RandomSource = SystemRandomSource()
  ) throws(ItemCryptoError) -> ItemBlob {
    do throws(ItemFault) {
      let key = try itemKey(from: random)
      let wrappedKey = try wrap(key, keyClass: keyClass, random: random)
      let header: [UInt8]? =
        switch mode {
        case .backup: nil
        case .device:
          ItemBlob.authenticatedHeader(
            version: .v3, hasStaticIV: true, keyClass: keyClass, wrappedKeyByteCount: wrappedKey.count)
        }
      let sealed = try seal(plaintext, header: header, key: key)
      do throws(FormatError) {
        return try ItemBlob(
          hasStaticIV: mode == .device, keyClass: keyClass, wrappedKey: wrappedKey, ciphertext: sealed.ciphertext,
          tag: sealed.tag)
      } catch {
        throw .malformed(error)
      }
    } catch {
      throw ItemCryptoError(error, keyClass: keyClass)
    }
  }

  /// Returns a new random key for one item.
  func itemKey(from random: some RandomSource) throws(ItemFault) -> Secret {
    do throws(DataProtectionError) {
      return try Secret(count: Self.keySize, from: random)
    } catch {
      throw .failed(error)
    }
  }

  /// Decrypts with the fixed nonce and `header` as additional data. If there is no header, the nonce is empty.
  func open(
    _ sealed: Sealed, header: [UInt8]?, key: borrowing Secret
  ) throws(ItemFault) -> SensitiveBytes {
    let plaintext: SensitiveBytes?
    do throws(DataProtectionError) {
      plaintext = try withCipher { (cipher) throws(DataProtectionError) in
        guard let header else { return try cipher.openWithEmptyNonce(sealed, key: key) }
        return try cipher.openWithNonce(ItemEncryptionMode.staticNonce, header: header, sealed, key: key)
      }
    } catch {
      throw .failed(error)
    }
    guard let plaintext else { throw .tagMismatch }
    return plaintext
  }

  /// Encrypts with the fixed nonce and `header` as additional data. If there is no header, the nonce is empty.
  func seal(
    _ plaintext: SensitiveBytes, header: [UInt8]?, key: borrowing Secret
  ) throws(ItemFault) -> Sealed {
    do throws(DataProtectionError) {
      return try withCipher { (cipher) throws(DataProtectionError) in
        guard let header else { return try cipher.sealWithEmptyNonce(plaintext, key: key) }
        return try cipher.sealWithNonce(ItemEncryptionMode.staticNonce, header: header, plaintext, key: key)
      }
    } catch {
      throw .failed(error)
    }
  }
}

extension FormatError {
  static var noProtection: FormatError {
    FormatError(.item, .unencodable, "it has no protection class")
  }
}

extension ClassKeys {
  /// Decrypts the secret of an iOS 4 item. Only the padding shows whether the result is correct.
  ///
  /// - Throws: `.malformed` if the padding is invalid because the item is damaged or the key is wrong.
  package func openSecret(of blob: LegacyItemBlob) throws(ItemCryptoError) -> SensitiveBytes {
    do throws(ItemFault) {
      let key = try unwrap(blob.wrappedKey, keyClass: blob.keyClass)
      let plaintext = try decrypted(blob.ciphertext, key: key)
      guard let paddingCount = plaintext.withBytes({ FileCipher.paddingCount(of: $0) }) else {
        throw .malformed(FormatError(.itemBlob, .malformed, "it does not end with valid padding"))
      }
      return plaintext.withBytes {
        SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: $0.dropLast(paddingCount)))
      }
    } catch {
      throw ItemCryptoError(error, keyClass: blob.keyClass)
    }
  }

  private func decrypted(
    _ ciphertext: [UInt8], key: borrowing Secret
  ) throws(ItemFault) -> SensitiveBytes {
    do throws(DataProtectionError) {
      let context = try CipherContext(.aes256CBC, .decrypt)
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try context.begin(key: bytes, iv: FileCipher.zeroVector)
      }
      return try SensitiveBytes(count: ciphertext.count) { (output) throws(DataProtectionError) in
        try ciphertext.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
      }
    } catch {
      throw .failed(error)
    }
  }
}
