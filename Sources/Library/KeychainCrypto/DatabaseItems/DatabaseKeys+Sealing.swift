public import Basics
public import KeychainFormats

/// Everything random in a sealed database item.
struct DatabaseItemMaterial: ~Copyable {
  let attributesKey: Secret
  let secretKey: Secret
  /// Of the box of the attributes' key, of the attributes and of the secret; 32 bytes each.
  let nonces: (key: [UInt8], attributes: [UInt8], secret: [UInt8])
  /// An upper-case UUID.
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

/// How the key of a new item's secret is kept.
public enum DatabaseKeyWrapping: Sendable, Hashable {
  /// As a Simulator keeps it: in clear.
  case simulator(SimulatorKeyStore)
  /// Under the key of its class.
  case classKey
}

extension DatabaseKeys {
  /// Seals an item for its own protection class, under new keys of its own and the class's key for attributes.
  ///
  /// The item's digest is computed again. Its class is written without a key generation.
  /// - Parameters:
  ///   - item: The item in clear.
  ///   - accessControl: Its access control; the class alone where it has none.
  ///   - version: The version word's number.
  ///   - wrapping: How the key of its secret is kept.
  ///   - random: Where keys, nonces and the text that ties its parts together come from.
  /// - Throws: `.malformed` for an item without a protection class, with another class in its access control or with a
  ///   value that DER cannot hold; `.noClassKey` and `.keyUnwrapFailed` where a key of the class is not there or does not
  ///   open.
  public func seal(
    _ item: KeychainItem, accessControl: ItemAccessControl? = nil, version: DatabaseItemBlob.Version = .v8,
    wrapping: DatabaseKeyWrapping, random: some RandomSource = SystemRandomSource()
  ) throws(ItemSealError) -> DatabaseItemBlob {
    let material: DatabaseItemMaterial
    do throws(DataProtectionError) {
      material = try DatabaseItemMaterial(from: random)
    } catch {
      throw ItemSealError(.failed(error))
    }
    return try seal(item, accessControl: accessControl, version: version, wrapping: wrapping, material)
  }

  /// - Parameter generation: What the key store's own number of the class has above its lower four bits.
  func seal(
    _ item: KeychainItem, accessControl: ItemAccessControl?, version: DatabaseItemBlob.Version,
    wrapping: DatabaseKeyWrapping, generation: UInt32 = 0, _ material: borrowing DatabaseItemMaterial
  ) throws(ItemSealError) -> DatabaseItemBlob {
    guard let protection = item.protection else { throw ItemSealError(.malformed(.noProtection)) }
    let keyClass = protection.keyClass
    let control = accessControl ?? ItemAccessControl(protection: protection)
    guard control.protectionCode.map({ $0 == protection.rawValue }) ?? true else {
      throw ItemSealError(
        .malformed(FormatError(.accessControl, .unencodable, "its class differs from the item's")),
        keyClass: keyClass)
    }
    let digest = try item.digest()
    do throws(ItemFault) {
      let classKey = try sealingKey(of: keyClass)
      let tamperCheck = PropertyValue.string(material.tamperCheck)
      var attributes = item.boxedAttributes
      attributes[.digest] = .data(digest)
      attributes[.tamperCheck] = tamperCheck
      attributes[.secAccessControl] = .data(try formatted { () throws(FormatError) in try control.serialized() })
      let plain = try formatted { () throws(FormatError) in try KeychainItem.boxDictionary(attributes) }
      let secret = try formatted { () throws(FormatError) in
        try KeychainItem.boxDictionary([.tamperCheck: tamperCheck], secrets: item.secrets)
      }
      let attributesKey = material.attributesKey.withBytes { SensitiveBytes(copying: $0) }
      let keyBox = try box(attributesKey, classKey, material.nonces.key)
      let attributesBox = try box(plain, material.attributesKey, material.nonces.attributes)
      let secretBox = try box(Self.padded(secret), material.secretKey, material.nonces.secret)
      let wrap = ItemKeyWrap(wrappedKey: try wrap(material.secretKey, keyClass: keyClass, wrapping))
      return try formatted { () throws(FormatError) in
        try DatabaseItemBlob(
          version: version, keyClass: KeyClass(rawValue: keyClass.rawValue | generation << 4),
          attributes: .init(box: attributesBox, wrappedKey: keyBox, tamperCheck: material.tamperCheck),
          secret: .init(box: secretBox, keyWrap: wrap, tamperCheck: material.tamperCheck))
      }
    } catch {
      throw ItemSealError(error, keyClass: keyClass)
    }
  }

  /// Wraps a key as the column `data` of the table `metadatakeys` holds it, or the key of an item's secret.
  ///
  /// - Throws: `.noClassKey` where it is to be wrapped under the key of a class that is not there.
  public func wrap(
    _ key: borrowing Secret, for protection: ProtectionClass, _ wrapping: DatabaseKeyWrapping
  ) throws(ItemSealError) -> SensitiveBytes {
    do throws(ItemFault) {
      return try wrap(key, keyClass: protection.keyClass, wrapping)
    } catch {
      throw ItemSealError(error, keyClass: protection.keyClass)
    }
  }

  private func wrap(
    _ key: borrowing Secret, keyClass: KeyClass, _ wrapping: DatabaseKeyWrapping
  ) throws(ItemFault) -> SensitiveBytes {
    switch wrapping {
    case .simulator(let store): return store.wrap(key)
    case .classKey:
      guard let held = classKeys[keyClass] else { throw .noClassKey }
      do throws(DataProtectionError) {
        return SensitiveBytes(copying: try KeyWrap.wrap(key, with: held.secret))
      } catch {
        throw .failed(error)
      }
    }
  }

  private func sealingKey(of keyClass: KeyClass) throws(ItemFault) -> Secret {
    do throws(DatabaseItemStop) {
      return try metadataKey(of: keyClass).key.copy()
    } catch {
      switch error {
      case .failed(let failure): throw .failed(failure)
      case .fault(let fault): throw fault.verdict == .noClassKey ? .noClassKey : .keyUnwrapFailed
      }
    }
  }

  private func box(
    _ plaintext: SensitiveBytes, _ key: borrowing Secret, _ nonce: [UInt8]
  ) throws(ItemFault) -> [UInt8] {
    let sealed: Sealed
    do throws(DataProtectionError) {
      sealed = try withWorkspace { (workspace) throws(DataProtectionError) in
        try workspace.seal(plaintext, key: key, nonce: nonce)
      }
    } catch {
      throw .failed(error)
    }
    return try formatted { () throws(FormatError) in
      try ArchivedBox(nonce: nonce, ciphertext: sealed.ciphertext, tag: sealed.tag).archive()
    }
  }

  /// Always fills up, by a whole 20 bytes where the length is a multiple already.
  static func padded(_ bytes: SensitiveBytes) -> SensitiveBytes {
    let count = paddedByteCount - bytes.count % paddedByteCount
    return SensitiveBytes(count: bytes.count + count) { target in
      bytes.withBytes { target.copyMemory(from: $0) }
      for index in bytes.count..<target.count { target[index] = UInt8(count) }
    }
  }
}
