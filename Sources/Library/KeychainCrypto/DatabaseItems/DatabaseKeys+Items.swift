package import Basics
package import KeychainFormats

extension AttributeCode {
  /// The random text that is stored in an item's attributes box and in its secret box, to show that they belong
  /// together.
  static let tamperCheck: AttributeCode = "TamperCheck"
  /// The access control in the box of the attributes, as DER.
  static let secAccessControl: AttributeCode = "SecAccessControl"
}

extension DatabaseKeys {
  /// The size of an item's padded secret is a multiple of this number of bytes.
  static let paddedByteCount = 20

  /// Decrypts a database item of version 7 or 8. Items of version 2 or 3, which may be in the same tables, are
  /// decrypted too.
  ///
  /// The result contains the item's error, if there is one, and the parts that could be decrypted.
  ///
  /// - Parameters:
  ///   - bytes: The value of the column `data`.
  ///   - kind: The kind of the item's table.
  ///   - secretKey: The key of the item's secret, 32 bytes, if it was unwrapped elsewhere.
  /// - Throws: An error that is not caused by the item.
  package func open(
    row bytes: [UInt8], kind: ItemKind, secretKey: SensitiveBytes? = nil
  ) throws(DataProtectionError) -> DecryptedDatabaseItem {
    var result = DecryptedDatabaseItem()
    if let version = ItemBlob.versionNumber(of: bytes), DatabaseItemBlob.Version(rawValue: version) == nil {
      return try openOlder(bytes, version: version, kind: kind)
    }
    let blob: DatabaseItemBlob
    do throws(FormatError) {
      blob = try DatabaseItemBlob(parsing: bytes)
    } catch {
      result.fault = DatabaseItemFault(error, .messages)
      return result
    }
    return try open(blob, kind: kind, secretKey: secretKey)
  }

  /// Decrypts an item whose messages were parsed already.
  ///
  /// - Parameters:
  ///   - blob: The item.
  ///   - kind: The kind of the item's table.
  ///   - secretKey: The key of the item's secret, 32 bytes, if it was unwrapped elsewhere.
  /// - Throws: An error that is not caused by the item.
  package func open(
    _ blob: DatabaseItemBlob, kind: ItemKind, secretKey: SensitiveBytes? = nil
  ) throws(DataProtectionError) -> DecryptedDatabaseItem {
    var result = DecryptedDatabaseItem()
    result.keyClass = blob.keyClass
    do throws(DatabaseItemError) {
      let (item, store) = try attributes(of: blob, kind: kind, into: &result)
      result.content = .attributes(item)
      let completeItem = try addingSecret(
        of: blob, to: item, givenKey: secretKey, attributesStore: store, findings: &result.findings)
      try checkClasses(blob, item, result.accessControl)
      result.content = .open(completeItem)
      if let digest = item[.digest], try computedDigest(of: completeItem) != digest.dataValue {
        result.findings.insert(.digestDiffers)
      }
    } catch {
      switch error {
      case .fault(let fault): result.fault = fault
      case .failed(let failure): throw failure
      }
    }
    return result
  }

  // MARK: Attributes

  private func attributes(
    of blob: DatabaseItemBlob, kind: ItemKind, into result: inout DecryptedDatabaseItem
  ) throws(DatabaseItemError) -> (item: KeychainItem, store: SimulatorKeyStore?) {
    guard blob.attributes.tamperCheck.hasSameBytes(as: blob.secret.tamperCheck) else {
      throw DatabaseItemError(.tamper, .outerTamperChecks, "the two parts have different tamper checks")
    }
    let classKey = try metadataKey(of: blob.keyClass.withoutGeneration)
    let plaintext = try openAttributesBox(of: blob, metadataKey: classKey.key)
    var item = try convertingFormatError(at: .attributesDictionary) { () throws(FormatError) in
      let item = try plaintext.withBytes { (bytes) throws(FormatError) in
        try KeychainItem(derDictionary: bytes, kind: kind, repairsDates: false)
      }
      guard item.secrets.isEmpty else { throw FormatError(.item, .malformed, "a secret is among the attributes") }
      return item
    }
    try checkTamperCheck(item[.tamperCheck], equals: blob.attributes.tamperCheck, at: .attributesTamperCheck)
    result.accessControl = try convertingFormatError(at: .accessControl) { () throws(FormatError) in
      guard let bytes = item[.secAccessControl]?.dataValue else {
        throw FormatError(.accessControl, .malformed, "it is missing")
      }
      return try ItemAccessControl(parsing: bytes)
    }
    item[.tamperCheck] = nil
    item[.secAccessControl] = nil
    if classKey.store != nil, blob.keyClass.generation != 0 { result.findings.insert(.generationInSimulator) }
    return (item, classKey.store)
  }

  /// Decrypts the key of the attributes with the class's metadata key, and the attributes with that key.
  private func openAttributesBox(
    of blob: DatabaseItemBlob, metadataKey: borrowing Secret
  ) throws(DatabaseItemError) -> SensitiveBytes {
    let keyBox = try convertingFormatError(at: .metadataKeyBox) { () throws(FormatError) in
      try ArchivedBox(archive: blob.attributes.wrappedKey)
    }
    let attributesKey = try key(in: keyBox, under: metadataKey, at: .metadataKeyBox)
    let box = try convertingFormatError(at: .attributesBox) { () throws(FormatError) in
      try ArchivedBox(archive: blob.attributes.box)
    }
    return try open(box, key: attributesKey, at: .attributesBox)
  }

  private func checkTamperCheck(
    _ inner: PropertyValue?, equals outer: String, at step: DatabaseItemFault.Step
  ) throws(DatabaseItemError) {
    guard let inner = inner?.stringValue else { throw DatabaseItemError(.tamper, step, "it has no tamper check") }
    guard inner.hasSameBytes(as: outer) else {
      throw DatabaseItemError(.tamper, step, "its tamper check differs from the outer one")
    }
  }

  // MARK: Secret

  /// Returns the item with its decrypted secret.
  ///
  /// - Parameters:
  ///   - blob: The encrypted item.
  ///   - item: The item with its attributes.
  ///   - givenKey: The key of the secret, if it was unwrapped elsewhere.
  ///   - attributesStore: The Simulator's key store that wrapped the key of the attributes, or `nil`.
  ///   - findings: The findings, to which a difference between the key stores is added.
  private func addingSecret(
    of blob: DatabaseItemBlob, to item: KeychainItem, givenKey: SensitiveBytes?, attributesStore: SimulatorKeyStore?,
    findings: inout Set<DecryptedDatabaseItem.Finding>
  ) throws(DatabaseItemError) -> KeychainItem {
    let unwrapped = try secretKey(of: blob, givenKey: givenKey)
    if let attributesStore, let secretStore = unwrapped.store, secretStore != attributesStore {
      findings.insert(.mixedKeyStores)
    }
    let box = try convertingFormatError(at: .secretBox) { () throws(FormatError) in
      try ArchivedBox(archive: blob.secret.box)
    }
    let padded = try open(box, key: unwrapped.key, at: .secretBox)
    guard let count = padded.withBytes(Self.countWithoutPadding) else {
      throw DatabaseItemError(.malformed, .padding, "its last byte is not a valid padding length")
    }
    let secretItem = try convertingFormatError(at: .secretDictionary) { () throws(FormatError) in
      try padded.withBytes { (bytes) throws(FormatError) in
        try KeychainItem(
          derDictionary: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), kind: item.kind, repairsDates: false)
      }
    }
    try checkTamperCheck(secretItem[.tamperCheck], equals: blob.secret.tamperCheck, at: .secretTamperCheck)
    guard secretItem.attributes.count == 1 else {
      throw DatabaseItemError(.malformed, .secretDictionary, "it contains something that is not a secret of its kind")
    }
    var completeItem = item
    completeItem.secrets = secretItem.secrets
    return completeItem
  }

  private func secretKey(
    of blob: DatabaseItemBlob, givenKey: SensitiveBytes?
  ) throws(DatabaseItemError) -> UnwrappedKey {
    guard let givenKey else { return try secretKey(of: blob) }
    guard givenKey.count == Self.keyByteCount else {
      throw DatabaseItemError(.malformed, .secretKey, "the key has \(givenKey.count) bytes, not \(Self.keyByteCount)")
    }
    return UnwrappedKey(key: givenKey.withBytes { Secret(copying: $0) }, store: nil)
  }

  /// Returns the number of bytes without padding. The last byte is the size of the padding, as a signed number. The
  /// other bytes of the padding are not checked, because the box's tag authenticates all bytes.
  ///
  /// - Returns: `nil` if the last byte is negative or greater than the length, or if there are no bytes.
  ///
  /// Source: Apple `SecDbKeychainItemV7.m`, `secretAttributesWithAcmContext`.
  static func countWithoutPadding(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard let last = bytes.last.map(Int.init), last <= Int8.max, last <= bytes.count else { return nil }
    return bytes.count - last
  }

  private func checkClasses(
    _ blob: DatabaseItemBlob, _ item: KeychainItem, _ accessControl: ItemAccessControl?
  ) throws(DatabaseItemError) {
    let blobClass = ProtectionClass(keyClass: blob.keyClass)
    // The access control of a token's item contains its class in another format, so it has no protection code.
    let accessControlClass = accessControl?.protectionCode.map(ProtectionClass.init(rawValue:)) ?? blobClass
    guard let blobClass, item.protection == blobClass, accessControlClass == blobClass else {
      throw DatabaseItemError(.malformed, .classes, "its class, its pdmn and its access control disagree")
    }
  }

  /// Returns the digest, or `nil` if DER cannot represent a value of the item, which never happens for an item that was
  /// read.
  private func computedDigest(of item: KeychainItem) throws(DatabaseItemError) -> [UInt8]? {
    do throws(ItemCryptoError) {
      return try item.digest()
    } catch {
      if case .failed(let failure) = error.fault { throw .failed(failure) }
      return nil
    }
  }
}

/// Items of earlier versions in the same tables, with one box for attributes and secret.
extension DatabaseKeys {
  /// Decrypts an item of version 2 or 3; versions 4 to 6 are reported as unsupported instead of damaged.
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

/// The random values of an encrypted database item.
struct DatabaseItemRandomValues: ~Copyable {
  let attributesKey: Secret
  let secretKey: Secret
  /// The nonces of the boxes of the attributes' key, of the attributes and of the secret, 32 bytes each.
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

/// A form in which a database stores a key: the key of a new item's secret, or the metadata key of a class.
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
  ///   - accessControl: The access control; with `nil`, it contains only the class.
  ///   - version: The version of the blob.
  ///   - wrapping: How the secret's key is stored.
  ///   - random: The source of keys, nonces and the tamper check.
  /// - Throws: `.malformed` for an item without a protection class, with another class in its access control, or with a
  ///   value that DER cannot represent; `.noClassKey` or `.keyUnwrapFailed` if a key of the class is missing or cannot
  ///   be unwrapped.
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
    let control = accessControl ?? ItemAccessControl(protection: protection)
    guard control.protectionCode.map({ $0 == protection.rawValue }) ?? true else {
      throw ItemCryptoError(
        .malformed(FormatError(.accessControl, .unencodable, "its class differs from the item's")),
        keyClass: keyClass)
    }
    let digest = try item.digest()
    do throws(ItemFault) {
      let metadataKey = try sealingKey(of: keyClass)
      let tamperCheck = randomValues.tamperCheck
      let attributes = try attributesPlaintext(
        of: item, digest: digest, accessControl: control, tamperCheck: tamperCheck)
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

  /// Wraps a key for the column `data` of the table `metadatakeys`, or the key of an item's secret.
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

/// The ciphers of the boxes of database items: AES-256-GCM with a nonce of 32 bytes and no additional data.
///
/// Not to be used from two threads at once: `DatabaseKeys` protects it with a lock.
struct DatabaseItemCipher: ~Copyable {
  private let encryption: CipherContext
  private let decryption: CipherContext
  /// The cipher for items of earlier versions in the same tables.
  let olderItems: ItemCipher

  init() throws(DataProtectionError) {
    let encryption = try CipherContext(.aes256GCM, .encrypt)
    let decryption = try CipherContext(.aes256GCM, .decrypt)
    let olderItems = try ItemCipher()
    self.encryption = encryption
    self.decryption = decryption
    self.olderItems = olderItems
  }

  /// Encrypts the contents of a box.
  ///
  /// - Parameter nonce: 32 bytes, new for each box.
  borrowing func seal(
    _ plaintext: SensitiveBytes, key: borrowing Secret, nonce: [UInt8]
  ) throws(DataProtectionError) -> Sealed {
    try key.withBytes { (bytes) throws(DataProtectionError) in try encryption.begin(key: bytes, longNonce: nonce) }
    return try encryption.seal(plaintext, header: [])
  }

  /// Returns the plaintext, or `nil` if the tag does not match.
  borrowing func open(
    _ box: ArchivedBox, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    var isIntact = false
    let plaintext = try SensitiveBytes(count: box.ciphertext.count) { (output) throws(DataProtectionError) in
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try decryption.begin(key: bytes, longNonce: box.nonce)
      }
      isIntact = try decryption.open(Sealed(ciphertext: box.ciphertext, tag: box.tag), header: [], into: output)
    }
    return isIntact ? plaintext : nil
  }
}
