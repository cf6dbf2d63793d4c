import Basics
internal import KeychainFormats

/// Why opening an item stops: the item's fault, or not.
enum DatabaseItemStop: Error {
  case fault(DatabaseItemFault)
  case failed(DataProtectionError)

  init(_ verdict: DatabaseItemVerdict, _ place: DatabaseItemFault.Place, _ reason: String) {
    self = .fault(DatabaseItemFault(verdict, place, reason))
  }
}

/// What a format refuses is the fault of the item at this place.
func formatted<Result>(
  _ place: DatabaseItemFault.Place, _ body: () throws(FormatError) -> Result
) throws(DatabaseItemStop) -> Result {
  do throws(FormatError) { return try body() } catch { throw .fault(DatabaseItemFault(error, place)) }
}

/// What OpenSSL refuses is no fault of the item.
func computed<Result: ~Copyable>(
  _ body: () throws(DataProtectionError) -> Result
) throws(DatabaseItemStop) -> Result {
  do throws(DataProtectionError) { return try body() } catch { throw .failed(error) }
}

/// A key that was opened, and by which stand-in it had been wrapped, if by one.
struct UnwrappedKey: ~Copyable {
  let key: Secret
  let store: SimulatorKeyStore?
}

extension DatabaseKeys {
  private static let shortestWrap = 24

  /// The key that opens the keys of attributes of a class.
  func metadataKey(of keyClass: KeyClass) throws(DatabaseItemStop) -> UnwrappedKey {
    switch metadataKeys[keyClass] {
    case nil:
      throw DatabaseItemStop(
        .noClassKey, .metadataClassKey, "there is no key for attributes of class \(keyClass.rawValue)")
    case .unwrapped(let held): return UnwrappedKey(key: held.secret.copy(), store: nil)
    case .wrapped(let wrapped): return try unwrap(wrapped, keyClass: keyClass, at: .metadataClassKey)
    }
  }

  /// The key that opens an item's secret.
  func secretKey(of blob: DatabaseItemBlob) throws(DatabaseItemStop) -> UnwrappedKey {
    guard let wrap = blob.secret.keyWrap else {
      throw DatabaseItemStop(.noClassKey, .secretKey, "the key of the secret is missing")
    }
    let isPersona =
      wrap.wrappedKey.count != Self.keyByteCount + SimulatorKeyStore.padByteCount
      && wrap.wrappedKey.withBytes { $0.first == 0x31 }
    switch (wrap.type, wrap.referenceKey) {
    case (ItemKeyWrap.classWrap, nil) where isPersona:
      let parts = try formatted(.secretKey) { () throws(FormatError) in
        try wrap.wrappedKey.withBytes { (bytes) throws(FormatError) in try DERPropertyList.decode(bytes) }
      }
      guard let sealed = parts.dictionaryValue?["d1"]?.dataValue, let key = parts.dictionaryValue?["d2"]?.dataValue
      else { throw DatabaseItemStop(.malformed, .secretKey, "a persona's key is not a dictionary with d1 and d2") }
      return UnwrappedKey(key: try open(sealed, underReference: key), store: nil)
    case (ItemKeyWrap.classWrap, nil):
      return try unwrap(wrap.wrappedKey, keyClass: blob.keyClass.withoutGeneration, at: .secretKey)
    case (ItemKeyWrap.referenceWrap, let key?):
      let sealed = wrap.wrappedKey.withBytes { Array($0) }
      return UnwrappedKey(key: try open(sealed, underReference: key), store: nil)
    default:
      throw DatabaseItemStop(
        .malformed, .secretKey,
        "a wrap of type \(wrap.type) \(wrap.referenceKey == nil ? "without" : "with") a reference key")
    }
  }

  /// A reference key opens in the key store that made it; that of the stand-in is public.
  private func open(_ sealed: [UInt8], underReference reference: [UInt8]) throws(DatabaseItemStop) -> Secret {
    guard StandInReferenceKey.matches(reference) else {
      throw DatabaseItemStop(.accessControl, .secretKey, "only the item's own device can unwrap its key")
    }
    let box = try formatted(.secretKey) { () throws(FormatError) in try ArchivedBox(archive: sealed) }
    return try key(in: box, under: Secret(copying: StandInReferenceKey.key), at: .secretKey)
  }

  /// The key of 32 bytes that a box holds.
  func key(
    in box: ArchivedBox, under key: borrowing Secret, at place: DatabaseItemFault.Place
  ) throws(DatabaseItemStop) -> Secret {
    let plaintext = try open(box, key: key, at: place)
    guard plaintext.count == Self.keyByteCount else {
      throw DatabaseItemStop(.malformed, place, "it holds \(plaintext.count) bytes; a key has \(Self.keyByteCount)")
    }
    return plaintext.withBytes { Secret(copying: $0) }
  }

  func open(
    _ box: ArchivedBox, key: borrowing Secret, at place: DatabaseItemFault.Place
  ) throws(DatabaseItemStop) -> SensitiveBytes {
    let plaintext: SensitiveBytes?
    do throws(DataProtectionError) {
      plaintext = try withWorkspace { (workspace) throws(DataProtectionError) in try workspace.open(box, key: key) }
    } catch {
      throw .failed(error)
    }
    guard let plaintext else {
      throw DatabaseItemStop(.tagMismatch, place, "its authentication tag does not match its bytes")
    }
    return plaintext
  }

  /// Opens a key that a Simulator or a class key has wrapped.
  func unwrap(
    _ wrapped: SensitiveBytes, keyClass: KeyClass, at place: DatabaseItemFault.Place
  ) throws(DatabaseItemStop) -> UnwrappedKey {
    guard wrapped.count >= Self.shortestWrap else {
      throw DatabaseItemStop(.malformed, place, "a wrapped key of \(wrapped.count) bytes")
    }
    let store = SimulatorKeyStore.of(wrapped)
    let byteCount = wrapped.count - SimulatorKeyStore.padByteCount
    let hasKey = store != nil || classKeys[keyClass] != nil
    guard !hasKey || byteCount == Self.keyByteCount else {
      throw DatabaseItemStop(.malformed, place, "a wrapped key of \(wrapped.count) bytes; it has 40")
    }
    if let store {
      let key = wrapped.withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0.prefix(byteCount))) }
      return UnwrappedKey(key: key, store: store)
    }
    guard let held = classKeys[keyClass] else {
      throw DatabaseItemStop(
        .noClassKey, place, "the key is wrapped by a device, and the key of class \(keyClass.rawValue) is missing")
    }
    let key: Secret?
    do throws(DataProtectionError) {
      key = try held.unwrap(wrapped.withBytes { Array($0) })
    } catch {
      throw .failed(error)
    }
    guard let key else {
      throw DatabaseItemStop(.tagMismatch, place, "the key of class \(keyClass.rawValue) does not unwrap it")
    }
    return UnwrappedKey(key: key, store: nil)
  }
}
