import Basics

extension Keybag {
  /// The purpose of a keybag.
  package struct BagType: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The bits of the type's number; the two bits above are flags of a device's keybag.
    static let mask: UInt32 = 0x3FFF_FFFF

    /// The keybag of a running device, which its passcode and its hardware unlock.
    package static let system = BagType(rawValue: 0)
    /// The keybag of a backup, which the backup's password unlocks.
    package static let backup = BagType(rawValue: 1)
    /// The keybag with which a paired computer or a device management server unlocks the device. Not supported.
    package static let escrow = BagType(rawValue: 2)
    /// The keybag of an iCloud backup. Not supported.
    package static let cloudBackup = BagType(rawValue: 3)
    /// A keybag of type 4. Not supported.
    package static let asymmetricBackup = BagType(rawValue: 4)

    /// The purpose in words: "a running device".
    package var displayName: String {
      switch self {
      case .system: "a running device"
      case .backup: "a backup"
      case .escrow: "a paired computer"
      case .cloudBackup: "an iCloud backup"
      case .asymmetricBackup: "an asymmetric backup"
      default: "an unknown kind"
      }
    }
  }

  /// The keys that wrap a class key. With both flags, the password's wrap is the outer one.
  package struct WrapFlags: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// AES-CBC with the device key, without an integrity check.
    package static let device = WrapFlags(rawValue: 1)
    /// RFC 3394 with the key that is derived from the password or passcode.
    package static let password = WrapFlags(rawValue: 2)
  }

  /// The type of a class key.
  package struct KeyType: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A key of 32 bytes for RFC 3394.
    package static let symmetric = KeyType(rawValue: 0)
    /// A Curve25519 key pair: the unencrypted public key wraps keys; the keybag stores the wrapped private key.
    package static let curve25519 = KeyType(rawValue: 1)
  }

  /// A wrapped class key. A field is `nil` if its record is absent, or if a number or the UUID has the wrong length.
  public struct ClassKey: Sendable, Hashable {
    /// The records of the class key in their original order, including unknown ones.
    package internal(set) var records: [Record]

    init(records: [Record]) { self.records = records }

    /// Creates a class key with the records `UUID CLAS WRAP KTYP WPKY`, and `PBKY` if there is a public key.
    ///
    /// - Parameters:
    ///   - uuid: The class key's identifier, 16 bytes.
    ///   - keyClass: The class, which occurs only once in a keybag.
    ///   - wrap: The keys that wrap the class key.
    ///   - keyType: Symmetric, or a Curve25519 key pair.
    ///   - wrappedKey: The wrapped key: 40 bytes if `wrap` contains `.password`, otherwise 32.
    ///   - publicKey: The public key, 32 bytes, for Curve25519 only.
    package init(
      uuid: [UInt8], keyClass: KeyClass, wrap: WrapFlags, keyType: KeyType = .symmetric, wrappedKey: [UInt8],
      publicKey: [UInt8]? = nil
    ) {
      records = [
        Record(.uuid, uuid), Record(.keyClass, keyClass.rawValue), Record(.wrap, wrap.rawValue),
        Record(.keyType, keyType.rawValue), Record(.wrappedKey, wrappedKey),
      ]
      if let publicKey { records.append(Record(.publicKey, publicKey)) }
    }

    /// The class key's identifier, 16 bytes. Nothing depends on it.
    package var uuid: [UInt8]? { records.value(of: .uuid).flatMap { $0.count == 16 ? $0 : nil } }

    /// The class as stored; a device's keybag has a key generation in the upper bits.
    package var keyClass: KeyClass? { records.word(of: .keyClass).map(KeyClass.init(rawValue:)) }

    /// The keys that wrap the class key. Setting the flags does not wrap the key again.
    package var wrap: WrapFlags? {
      get { records.word(of: .wrap).map(WrapFlags.init(rawValue:)) }
      set { records.set(.wrap, to: newValue?.rawValue) }
    }

    /// The type of key; symmetric if the record is absent, as in keybags of iOS 4.
    package var keyType: KeyType? {
      guard let value = records.value(of: .keyType) else { return .symmetric }
      return value.bigEndianWord.map(KeyType.init(rawValue:))
    }

    /// The wrapped key. Setting it replaces the value in place and keeps all other records.
    package var wrappedKey: [UInt8]? {
      get { records.value(of: .wrappedKey) }
      set { records.set(.wrappedKey, to: newValue) }
    }

    /// The public key of a Curve25519 class, 32 bytes, not encrypted.
    package var publicKey: [UInt8]? { records.value(of: .publicKey) }
  }
}

/// A key that a class key wraps, with the class before it: `ManifestKey` and a file's `EncryptionKey`.
///
/// ```
/// field     class (4 bytes, little-endian), wrapped key (40 or 72 bytes)
/// ```
///
/// Source: iphone_backup_decrypt, `google_iphone_dataprotection.py`.
package struct ClassWrappedKey: Sendable, Hashable {
  /// The class whose key wraps this key.
  package var keyClass: KeyClass
  /// The wrapped key: 40 bytes for a symmetric class key, 72 for a Curve25519 one.
  package var wrappedKey: [UInt8]

  /// Creates a field from its parts.
  package init(keyClass: KeyClass, wrappedKey: [UInt8]) {
    self.keyClass = keyClass
    self.wrappedKey = wrappedKey
  }

  /// Reads a class and the wrapped key after it.
  ///
  /// - Throws: `.malformed` unless there are 44 or 76 bytes.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    let classByteCount = 4
    guard [classByteCount + 40, classByteCount + 72].contains(bytes.count) else {
      throw FormatError(.wrappedKey, .malformed, "it has \(bytes.count) bytes, not 44 or 76")
    }
    self.init(
      keyClass: KeyClass(rawValue: bytes[..<classByteCount].reversed().reduce(0) { $0 << 8 | UInt32($1) }),
      wrappedKey: Array(bytes[classByteCount...]))
  }

  /// The field's bytes: 44 for a symmetric class key, 76 for a Curve25519 one.
  package func serialized() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: keyClass.rawValue)
    return bytes + wrappedKey
  }
}

/// The number of a class key in a keybag (`CLAS`) and in an item blob.
///
/// 1-4 protect files, 5 is internal, 6-12 protect keychain items. Other numbers are preserved and match nothing.
/// Source: Apple `SecDbKeychainSerializedItemV7.proto`, `SecKeybagSupport.h`.
public struct KeyClass: RawRepresentable, Sendable, Hashable, Comparable {
  /// The number.
  public let rawValue: UInt32

  /// Creates a class from its number.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Files that are readable only while the device is unlocked (`NSFileProtectionComplete`).
  package static let fileComplete = KeyClass(rawValue: 1)
  /// Files that stay writable after the device is locked (`NSFileProtectionCompleteUnlessOpen`). The class key is a
  /// Curve25519 key pair.
  package static let fileCompleteUnlessOpen = KeyClass(rawValue: 2)
  /// Files that are readable after the first unlock (`NSFileProtectionCompleteUntilFirstUserAuthentication`).
  package static let fileUntilFirstUserAuthentication = KeyClass(rawValue: 3)
  /// Files that are always readable (`NSFileProtectionNone`).
  package static let fileNone = KeyClass(rawValue: 4)
  /// An internal class in every real keybag, wrapped by the device; its purpose is not published.
  package static let recovery = KeyClass(rawValue: 5)
  /// Items with `ak`: while unlocked, on any device.
  package static let whenUnlocked = KeyClass(rawValue: 6)
  /// Items with `ck`: after the first unlock, on any device.
  package static let afterFirstUnlock = KeyClass(rawValue: 7)
  /// Items with `dk`: always, on any device.
  package static let always = KeyClass(rawValue: 8)
  /// Items with `aku`: while unlocked, on this device.
  package static let whenUnlockedThisDeviceOnly = KeyClass(rawValue: 9)
  /// Items with `cku`: after the first unlock, on this device.
  package static let afterFirstUnlockThisDeviceOnly = KeyClass(rawValue: 10)
  /// Items with `dku`: always, on this device.
  package static let alwaysThisDeviceOnly = KeyClass(rawValue: 11)
  /// Items with `akpu`: while unlocked with a passcode set. No backup has this class.
  package static let whenPasscodeSetThisDeviceOnly = KeyClass(rawValue: 12)

  /// The class without the key generation (bits 0x10 and up) that a device's own database may contain.
  package var withoutGeneration: KeyClass { KeyClass(rawValue: rawValue & 0xF) }

  /// The key generation in the upper bits, counted from 0.
  package var generation: UInt32 { rawValue >> 4 }

  public static func < (left: KeyClass, right: KeyClass) -> Bool { left.rawValue < right.rawValue }
}
