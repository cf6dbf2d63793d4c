import Basics
package import KeychainFormats

/// The class keys of a keybag, unwrapped if possible.
///
/// Shared by reference, and overwritten when the last reference is released. Callers get the keys of items and files, but
/// not the class keys. Only `exported()` returns the class keys, for a device's memory. Several threads may use one
/// object, but only one thread at a time uses its ciphers.
public final class ClassKeys: Sendable {
  /// The 16 bytes of the keybag's UUID.
  package let keybagUUID: [UInt8]
  /// The number of class keys that are wrapped with the password.
  package let wrappedCount: Int
  /// The number of class keys that the password unwrapped. A lower number than `wrappedCount` means damage, or that no
  /// password was given.
  package let unwrappedCount: Int
  /// The key of the records in an iOS 10.0 manifest, from `BackupArchive.recordKey`, or `nil` if the backup is not from
  /// iOS 10.0.
  package let recordKey: ManifestRecordKey?

  let entries: [KeyClass: Entry]
  /// The ciphers, created on first use.
  private let cipher = Locked<ItemCipher?>(nil)

  /// The state of a class, with its key if it is available.
  struct Entry: Sendable {
    var availability: ClassKeyAvailability
    var key: WrappingKey?
    /// The public key, or `nil` if the class key is an AES key.
    var publicKey: [UInt8]?
    /// The problem with the record, without bytes of a key, or `nil`.
    var problem: String?
  }

  /// A class key in a box for collections, wiped with its last reference.
  final class WrappingKey: Sendable {
    let secret: Secret
    /// The cipher for unwrapping, created on first use, because a few class keys unwrap the keys of thousands of items.
    private let unwrapCipher = Locked<CipherContext?>(nil)

    init(_ secret: consuming Secret) { self.secret = secret }

    /// Unwraps a key, or returns `nil` if this key did not wrap it.
    func unwrap(_ wrapped: [UInt8]) throws(DataProtectionError) -> Secret? {
      try unwrapCipher.withLock { (context) throws(DataProtectionError) in
        if context == nil { context = try KeyWrap.unwrapCipher(with: secret) }
        switch context {
        case .some(let context): return try KeyWrap.unwrap(wrapped, context)
        case .none: return nil
        }
      }
    }
  }

  init(
    keybagUUID: [UInt8], entries: [KeyClass: Entry], wrappedCount: Int, unwrappedCount: Int,
    recordKey: ManifestRecordKey? = nil
  ) {
    self.keybagUUID = keybagUUID
    self.entries = entries
    self.wrappedCount = wrappedCount
    self.unwrappedCount = unwrappedCount
    self.recordKey = recordKey
  }

  /// Returns these keys with separate ciphers, so that another thread can use them without waiting. No key is copied.
  package func sharing() -> ClassKeys { with(entries, recordKey) }

  /// Returns these keys with the key for the records in an iOS 10.0 manifest.
  package func with(recordKey: ManifestRecordKey?) -> ClassKeys { with(entries, recordKey) }

  private func with(_ entries: [KeyClass: Entry], _ recordKey: ManifestRecordKey?) -> ClassKeys {
    ClassKeys(
      keybagUUID: keybagUUID, entries: entries, wrappedCount: wrappedCount, unwrappedCount: unwrappedCount,
      recordKey: recordKey)
  }

  /// Returns an object without classes, for a keybag that cannot be used.
  package static func none() -> ClassKeys {
    ClassKeys(keybagUUID: [], entries: [:], wrappedCount: 0, unwrappedCount: 0)
  }

  /// Returns whether the key of a class is available, or the reason why not.
  package func availability(of keyClass: KeyClass) -> ClassKeyAvailability {
    entries[keyClass]?.availability ?? .absent
  }

  /// Returns whether a key of this class is available.
  package func hasKey(of keyClass: KeyClass) -> Bool { entries[keyClass]?.key != nil }

  /// The classes in the keybag, in ascending order.
  package var classes: [KeyClass] { entries.keys.sorted() }

  /// The problems with single classes, such as "10 of 11 class keys can be unwrapped, class 7 cannot", or `nil`
  /// if there are none.
  package var damageReport: String? {
    let damaged = classes.filter { entries[$0]?.availability == .damaged }
    guard !damaged.isEmpty else { return nil }
    let names = damaged.map { keyClass in
      guard let problem = entries[keyClass]?.problem else { return "class \(keyClass.rawValue) cannot" }
      return "class \(keyClass.rawValue): \(problem)"
    }
    return "\(unwrappedCount) of \(wrappedCount) class keys can be unwrapped, " + names.joined(separator: ", ")
  }

  /// The number of unwrapped keys, such as "11 of 11 class keys can be unwrapped", or the damage report.
  package var summary: String { damageReport ?? "\(unwrappedCount) of \(wrappedCount) class keys can be unwrapped" }

  /// Returns the keys that remain after a device is locked: the given classes are `.locked`. Their keys are overwritten
  /// when this object is released.
  package func dropping(_ keyClasses: some Sequence<KeyClass>) -> ClassKeys {
    var entries = entries
    for keyClass in keyClasses where entries[keyClass]?.key != nil {
      entries[keyClass]?.key = nil
      entries[keyClass]?.availability = .locked
    }
    return with(entries, recordKey)
  }

  /// Calls a closure with the ciphers, one caller at a time.
  func withCipher<Result: ~Copyable>(
    _ body: (borrowing ItemCipher) throws(DataProtectionError) -> sending Result
  ) throws(DataProtectionError) -> Result {
    try cipher.withLock { (cached) throws(DataProtectionError) in
      let cipher: ItemCipher
      if let existing = cached.take() { cipher = existing } else { cipher = try ItemCipher() }
      let result = try body(cipher)
      cached = consume cipher
      return result
    }
  }
}

extension ClassKeys {
  /// Unwraps the key of an item or file with a class key.
  func unwrap(_ wrapped: [UInt8], keyClass: KeyClass) throws(ItemFault) -> Secret {
    let entry = try usableEntry(keyClass)
    let key: Secret?
    do throws(DataProtectionError) {
      if let publicKey = entry.publicKey {
        key = try Curve25519Wrap.unwrap(wrapped, privateKey: entry.key.secret, publicKey: publicKey)
      } else if wrapped.count == ClassKeys.keySize + KeyWrap.overhead {
        key = try entry.key.unwrap(wrapped)
      } else {
        key = nil
      }
    } catch {
      throw .failed(error)
    }
    guard let key else { throw .keyUnwrapFailed }
    return key
  }

  /// Wraps the key of an item or file with a class key: 40 bytes, or 72 for a Curve25519 class key.
  func wrap(
    _ key: borrowing Secret, keyClass: KeyClass, random: some RandomSource
  ) throws(ItemFault) -> [UInt8] {
    let entry = try usableEntry(keyClass)
    do throws(DataProtectionError) {
      if let publicKey = entry.publicKey { return try Curve25519Wrap.wrap(key, to: publicKey, random: random) }
      return try withCipher { (cipher) throws(DataProtectionError) in
        try cipher.wrap(key, with: entry.key.secret)
      }
    } catch {
      throw .failed(error)
    }
  }

  /// The size of class keys and of the keys that they wrap, in bytes.
  static var keySize: Int { 32 }

  /// Checks that the key of a class is available.
  ///
  /// - Throws: The errors of `wrap` if the key of a class is not available.
  func requireKey(of keyClass: KeyClass) throws(ItemFault) { _ = try usableEntry(keyClass) }

  private func usableEntry(_ keyClass: KeyClass) throws(ItemFault) -> (key: WrappingKey, publicKey: [UInt8]?) {
    guard let entry = entries[keyClass] else { throw .noClassKey }
    guard let key = entry.key else {
      switch entry.availability {
      case .deviceBound: throw .deviceBound
      case .damaged: throw .classKeyDamaged
      case .available, .availableThroughDevice, .locked: throw .locked
      case .absent: throw .noClassKey
      }
    }
    return (key, entry.publicKey)
  }
}

/// The format in which a device stores its unlocked keys. Numbers are big-endian, with 4 bytes.
///
/// - The header: `KHM1`, the keybag's UUID (16 bytes), and the numbers of wrapped, unwrapped and all classes.
/// - A record of 72 bytes for each class:
///   - Its number.
///   - One byte each for its availability, whether it has a key, whether it has a public key, and 0.
///   - The key and the public key, 32 bytes each.
/// - The SHA-256 of the header and the records, which detects an incomplete file.
extension ClassKeys {
  private static let magic: [UInt8] = Array("KHM1".utf8)
  private static let headerSize = 32
  private static let recordSize = 72
  private static let checkSize = 32
  /// The maximum number of classes, more than any keybag has.
  static let maximumClassCount = 64

  /// Returns all unwrapped keys, and the states of the other classes. The bytes give access to everything the keys
  /// protect.
  package func exported() throws(DataProtectionError) -> Secret {
    let classes = classes
    let bodySize = Self.headerSize + classes.count * Self.recordSize
    return try Secret(count: bodySize + Self.checkSize) { (output) throws(DataProtectionError) in
      let counts = [wrappedCount, unwrappedCount, classes.count].flatMap { bigEndianBytes(UInt32(clamping: $0)) }
      output.copyBytes(from: Self.magic + keybagUUID.prefix(16) + counts)
      for (index, keyClass) in classes.enumerated() {
        guard let entry = entries[keyClass] else { continue }
        let start = Self.headerSize + index * Self.recordSize
        let record = UnsafeMutableRawBufferPointer(rebasing: output[start..<start + Self.recordSize])
        record.copyBytes(from: bigEndianBytes(keyClass.rawValue))
        record[4] = entry.availability.rawValue
        record[5] = entry.key == nil ? 0 : 1
        record[6] = entry.publicKey == nil ? 0 : 1
        entry.key?.secret.withBytes { UnsafeMutableRawBufferPointer(rebasing: record[8..<40]).copyMemory(from: $0) }
        if let publicKey = entry.publicKey {
          UnsafeMutableRawBufferPointer(rebasing: record[40..<72]).copyBytes(from: publicKey)
        }
      }
      let check = try Digest.sha256(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(output)[..<bodySize]))
      UnsafeMutableRawBufferPointer(rebasing: output[bodySize...]).copyBytes(from: check)
    }
  }

  /// Reads the keys that `exported()` returned.
  ///
  /// - Throws: `.malformed` for incomplete bytes or another format.
  package convenience init(importing memory: borrowing Secret) throws(DataProtectionError) {
    let contents = try memory.withBytes { (bytes) throws(DataProtectionError) in try Self.parse(bytes) }
    self.init(
      keybagUUID: contents.uuid, entries: contents.entries, wrappedCount: contents.wrapped,
      unwrappedCount: contents.unwrapped)
  }

  private static func parse(
    _ bytes: UnsafeRawBufferPointer
  ) throws(DataProtectionError) -> (uuid: [UInt8], entries: [KeyClass: Entry], wrapped: Int, unwrapped: Int) {
    guard bytes.count >= headerSize + checkSize, bytes.prefix(4).elementsEqual(magic) else { throw .incompleteExport }
    func integer(at offset: Int) -> Int { Int(bigEndianInteger(bytes[offset..<offset + 4])) }
    let count = integer(at: 28)
    guard count <= maximumClassCount, bytes.count == headerSize + count * recordSize + checkSize else {
      throw .incompleteExport
    }
    let check = try Digest.sha256(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - checkSize)]))
    guard bytes.suffix(checkSize).elementsEqual(check) else { throw .incompleteExport }

    var entries: [KeyClass: Entry] = [:]
    for index in 0..<count {
      let start = headerSize + index * recordSize
      let record = UnsafeRawBufferPointer(rebasing: bytes[start..<start + recordSize])
      let keyClass = KeyClass(rawValue: UInt32(clamping: bigEndianInteger(record[0..<4])))
      guard let availability = ClassKeyAvailability(rawValue: record[4]), entries[keyClass] == nil else {
        throw .incompleteExport
      }
      var entry = Entry(availability: availability)
      if record[5] == 1 { entry.key = WrappingKey(Secret(copying: UnsafeRawBufferPointer(rebasing: record[8..<40]))) }
      if record[6] == 1 { entry.publicKey = Array(record[40..<72]) }
      entries[keyClass] = entry
    }
    return (Array(bytes[4..<20]), entries, integer(at: 20), integer(at: 24))
  }
}

extension DataProtectionError {
  fileprivate static var incompleteExport: DataProtectionError {
    DataProtectionError(.malformed, "the file of unlocked keys is incomplete")
  }
}
