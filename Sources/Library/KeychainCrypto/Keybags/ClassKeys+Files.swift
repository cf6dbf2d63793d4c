import Basics
package import KeychainFormats

extension ClassKeys {
  /// Unwraps a file's key or the manifest's key (`EncryptionKey`, `ManifestKey`).
  ///
  /// - Parameter field: The class in 4 little-endian bytes, then the wrapped key.
  /// - Throws: `.malformed` for a wrong length, `.keyUnavailable` if the class key is not available, `.keyUnwrapFailed` if
  ///   the class key does not unwrap the file's key.
  package func unwrapFileKey(_ field: [UInt8]) throws(DataProtectionError) -> Secret {
    let prefixSize = 4
    let sizes = [ClassKeys.keySize + KeyWrap.overhead, Curve25519Wrap.wrappedSize].map { $0 + prefixSize }
    guard sizes.contains(field.count) else {
      throw DataProtectionError(
        .malformed, "a wrapped file key has \(sizes[0]) or \(sizes[1]) bytes, not \(field.count)")
    }
    let classNumber = field.prefix(prefixSize).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    let keyClass = KeyClass(rawValue: classNumber)
    do throws(ItemFault) {
      return try unwrap(Array(field.dropFirst(prefixSize)), keyClass: keyClass)
    } catch {
      throw DataProtectionError(fileKeyFault: error, keyClass)
    }
  }

  /// Returns the field that `unwrapFileKey(_:)` reads.
  package func wrapFileKey(
    _ key: borrowing Secret, keyClass: KeyClass, random: some RandomSource = SystemRandomSource()
  ) throws(DataProtectionError) -> [UInt8] {
    do throws(ItemFault) {
      return bigEndianBytes(keyClass.rawValue).reversed() + (try wrap(key, keyClass: keyClass, random: random))
    } catch {
      throw DataProtectionError(fileKeyFault: error, keyClass)
    }
  }
}

extension DataProtectionError {
  fileprivate init(fileKeyFault fault: ItemFault, _ keyClass: KeyClass) {
    let name = "class \(keyClass.rawValue)"
    switch fault {
    case .noClassKey: self.init(.keyUnavailable, "the keybag has no key of \(name)")
    case .locked: self.init(.keyUnavailable, "the key of \(name) is not unlocked")
    case .deviceBound: self.init(.keyUnavailable, "the key of \(name) is wrapped with a device key")
    case .classKeyDamaged: self.init(.keyUnavailable, "the key of \(name) cannot be unwrapped")
    case .keyUnwrapFailed, .tagMismatch: self.init(.keyUnwrapFailed, "the key of \(name) does not unwrap it")
    case .malformed(let error): self.init(.malformed, error.reason)
    case .unsupportedVersion(let version): self.init(.unsupported, "version \(version)")
    case .failed(let error): self = error
    }
  }
}
