internal import KeychainFormats

extension ClassKeys {
  /// Opens the key of an item or file that is wrapped to a class.
  borrowing func unwrap(_ wrapped: [UInt8], keyClass: KeyClass) throws(ItemFault) -> Secret {
    let entry = try usableEntry(keyClass)
    let key: Secret?
    do throws(DataProtectionError) {
      if let publicKey = entry.publicKey {
        key = try Curve25519Wrap.unwrap(wrapped, privateKey: entry.held.secret, publicKey: publicKey)
      } else if wrapped.count == ClassKeys.keySize + KeyWrap.overhead {
        key = try entry.held.unwrap(wrapped)
      } else {
        key = nil
      }
    } catch {
      throw .failed(error)
    }
    guard let key else { throw .keyUnwrapFailed }
    return key
  }

  /// Wraps the key of an item or file to a class: 40 bytes, or 72 where the class key is of type Curve25519.
  borrowing func wrap(
    _ key: borrowing Secret, keyClass: KeyClass, random: some RandomSource
  ) throws(ItemFault) -> [UInt8] {
    let entry = try usableEntry(keyClass)
    do throws(DataProtectionError) {
      if let publicKey = entry.publicKey { return try Curve25519Wrap.wrap(key, to: publicKey, random: random) }
      return try withWorkspace { (workspace) throws(DataProtectionError) in
        try workspace.wrap(key, with: entry.held.secret)
      }
    } catch {
      throw .failed(error)
    }
  }

  /// Of class keys and of the keys wrapped with them, in bytes.
  static var keySize: Int { 32 }

  /// - Throws: What `wrap` throws where the key of a class is not available.
  borrowing func requireKey(of keyClass: KeyClass) throws(ItemFault) { _ = try usableEntry(keyClass) }

  private borrowing func usableEntry(_ keyClass: KeyClass) throws(ItemFault) -> (held: HeldKey, publicKey: [UInt8]?) {
    guard let entry = entries[keyClass] else { throw .noClassKey }
    guard let held = entry.key else {
      switch entry.availability {
      case .deviceBound: throw .deviceBound
      case .damaged: throw .classKeyDamaged
      case .available, .availableThroughDevice, .locked: throw .locked
      case .absent: throw .noClassKey
      }
    }
    return (held, entry.publicKey)
  }
}
