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

  /// Decrypts the attributes, and reads the access control among them.
  private func attributes(
    of blob: DatabaseItemBlob, kind: ItemKind, into result: inout DecryptedDatabaseItem
  ) throws(DatabaseItemError) -> (item: KeychainItem, store: SimulatorKeyStore?) {
    guard blob.attributes.tamperCheck.hasSameBytes(as: blob.secret.tamperCheck) else {
      throw DatabaseItemError(.tamper, .outerTamperChecks, "the two parts have different tamper checks")
    }
    let metadataKey = try metadataKey(of: blob.keyClass.withoutGeneration)
    let plaintext = try openAttributesBox(of: blob, metadataKey: metadataKey.key)
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
    if metadataKey.store != nil, blob.keyClass.generation != 0 { result.findings.insert(.generationInSimulator) }
    return (item, metadataKey.store)
  }

  /// Decrypts the attributes' key with the class's metadata key, and then the attributes with their key.
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
    _ innerValue: PropertyValue?, equals outer: String, at step: DatabaseItemFault.Step
  ) throws(DatabaseItemError) {
    guard let inner = innerValue?.stringValue else { throw DatabaseItemError(.tamper, step, "it has no tamper check") }
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
    guard let paddingCount = bytes.last.map(Int.init), paddingCount <= Int8.max, paddingCount <= bytes.count else {
      return nil
    }
    return bytes.count - paddingCount
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

  /// Returns the item's digest, or `nil` if DER cannot represent one of its values. That never happens for an item that
  /// was read.
  private func computedDigest(of item: KeychainItem) throws(DatabaseItemError) -> [UInt8]? {
    do throws(ItemCryptoError) {
      return try item.digest()
    } catch {
      if case .failed(let failure) = error.fault { throw .failed(failure) }
      return nil
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
