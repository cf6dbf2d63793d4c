import Basics

extension Keybag {
  /// What a bag is for.
  public struct BagType: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The bits that number the type; the two above are flags of device bags.
    static let mask: UInt32 = 0x3FFF_FFFF

    /// The bag of a running device, opened by its passcode and its hardware.
    public static let system = BagType(rawValue: 0)
    /// The bag of a backup, opened by the backup's password.
    public static let backup = BagType(rawValue: 1)
    /// The bag that a paired computer or a device management holds to unlock the device. Nothing here opens one.
    public static let escrow = BagType(rawValue: 2)
    /// The bag of an iCloud backup. Nothing here makes or opens one.
    public static let cloudBackup = BagType(rawValue: 3)
    /// A bag of type 4. Nothing here makes or opens one.
    public static let asymmetricBackup = BagType(rawValue: 4)

    /// Whose bag it is: "a running device".
    package var words: String {
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

  /// What a class key is wrapped with. With both, the password's wrap is the outer one.
  public struct WrapFlags: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// AES-CBC with the hardware key of the device; carries no check value.
    public static let device = WrapFlags(rawValue: 1)
    /// RFC 3394 with the key derived from the password or passcode.
    public static let password = WrapFlags(rawValue: 2)
  }

  /// What kind of key a class has.
  public struct KeyType: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A key of 32 bytes for RFC 3394.
    public static let symmetric = KeyType(rawValue: 0)
    /// A Curve25519 pair: the public half, in clear, wraps; the private one is what the bag keeps.
    public static let curve25519 = KeyType(rawValue: 1)
  }

  /// One class key, wrapped. Reading a field gives `nil` if its record is absent or has another length.
  public struct ClassKey: Sendable, Hashable {
    /// The records of the group as they came, unknown ones among them.
    public internal(set) var records: [Record]

    init(records: [Record]) { self.records = records }

    /// Builds a group with the records `UUID CLAS WRAP KTYP WPKY`, and `PBKY` where there is a public key.
    ///
    /// - Parameters:
    ///   - uuid: Sixteen bytes.
    ///   - keyClass: The class, which occurs once in a bag.
    ///   - wrap: What the key is wrapped with.
    ///   - keyType: Symmetric, or a Curve25519 pair.
    ///   - wrappedKey: Forty bytes where `wrap` has `.password`, otherwise thirty-two.
    ///   - publicKey: Thirty-two bytes, for Curve25519 classes alone.
    public init(
      uuid: [UInt8], keyClass: KeyClass, wrap: WrapFlags, keyType: KeyType = .symmetric, wrappedKey: [UInt8],
      publicKey: [UInt8]? = nil
    ) {
      records = [
        Record(.uuid, uuid), Record(.keyClass, keyClass.rawValue), Record(.wrap, wrap.rawValue),
        Record(.keyType, keyType.rawValue), Record(.wrappedKey, wrappedKey),
      ]
      if let publicKey { records.append(Record(.publicKey, publicKey)) }
    }

    /// The group's own identifier, sixteen bytes. Nothing depends on it.
    public var uuid: [UInt8]? { records.value(of: .uuid).flatMap { $0.count == 16 ? $0 : nil } }

    /// The number as it stands in the bag; bags of devices carry a key generation in its upper bits.
    public var keyClass: KeyClass? { records.word(of: .keyClass).map(KeyClass.init(rawValue:)) }

    /// What the key is wrapped with. Setting it changes no byte of the key: it has to be wrapped so.
    public var wrap: WrapFlags? {
      get { records.word(of: .wrap).map(WrapFlags.init(rawValue:)) }
      set { records.set(.wrap, to: newValue?.rawValue) }
    }

    /// Symmetric where the bag does not say, as in bags of iOS 4.
    public var keyType: KeyType? {
      guard let value = records.value(of: .keyType) else { return .symmetric }
      return value.bigEndianWord.map(KeyType.init(rawValue:))
    }

    /// Setting it replaces the value in place and leaves every other record as it was.
    public var wrappedKey: [UInt8]? {
      get { records.value(of: .wrappedKey) }
      set { records.set(.wrappedKey, to: newValue) }
    }

    /// The public half of a Curve25519 class, 32 bytes in clear.
    public var publicKey: [UInt8]? { records.value(of: .publicKey) }
  }
}

/// A key wrapped by a class key, with the class in front: `ManifestKey` and a file's `EncryptionKey`.
///
/// The class is little-endian. Source: iphone_backup_decrypt, `google_iphone_dataprotection.py`.
public struct ClassWrappedKey: Sendable, Hashable {
  /// The class whose key wraps this one.
  public var keyClass: KeyClass
  /// Forty bytes for a symmetric class key, seventy-two for a Curve25519 one.
  public var wrappedKey: [UInt8]

  /// Creates a field to write.
  public init(keyClass: KeyClass, wrappedKey: [UInt8]) {
    self.keyClass = keyClass
    self.wrappedKey = wrappedKey
  }

  /// Reads a class and the wrapped key after it.
  ///
  /// - Throws: `.malformed` unless there are 44 or 76 bytes.
  public init(parsing bytes: [UInt8]) throws(FormatError) {
    guard bytes.count == 44 || bytes.count == 76 else {
      throw FormatError(.wrappedKey, .malformed, "it has \(bytes.count) bytes, not 44 or 76")
    }
    self.init(
      keyClass: KeyClass(rawValue: bytes[..<4].reversed().reduce(0) { $0 << 8 | UInt32($1) }),
      wrappedKey: Array(bytes[4...]))
  }

  /// The field's bytes: 44 for a symmetric class key, 76 for a Curve25519 one.
  public func serialized() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: keyClass.rawValue)
    return bytes + wrappedKey
  }
}

/// The number of a class key in a keybag (`CLAS`) and in an item blob.
///
/// Any number may stand in a file: 1-4 protect files, 5 is internal, 6-12 protect keychain items, others are kept as
/// they are and match nothing. Source: Apple `SecDbKeychainSerializedItemV7.proto`, `SecKeybagSupport.h`.
public struct KeyClass: RawRepresentable, Sendable, Hashable, Comparable {
  public let rawValue: UInt32

  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Files that open only while the device is unlocked (`NSFileProtectionComplete`).
  public static let fileComplete = KeyClass(rawValue: 1)
  /// Files that stay writable after a lock (`NSFileProtectionCompleteUnlessOpen`); its key is a Curve25519 pair.
  public static let fileCompleteUnlessOpen = KeyClass(rawValue: 2)
  /// Files that open from the first unlock on (`NSFileProtectionCompleteUntilFirstUserAuthentication`).
  public static let fileUntilFirstUserAuthentication = KeyClass(rawValue: 3)
  /// Files that always open (`NSFileProtectionNone`).
  public static let fileNone = KeyClass(rawValue: 4)
  /// Seen in every real bag, device-wrapped; its purpose is not published.
  public static let recovery = KeyClass(rawValue: 5)
  /// Items of `ak`: while unlocked, on any device.
  public static let whenUnlocked = KeyClass(rawValue: 6)
  /// Items of `ck`: after the first unlock, on any device.
  public static let afterFirstUnlock = KeyClass(rawValue: 7)
  /// Items of `dk`: always, on any device.
  public static let always = KeyClass(rawValue: 8)
  /// Items of `aku`: while unlocked, on this device.
  public static let whenUnlockedThisDeviceOnly = KeyClass(rawValue: 9)
  /// Items of `cku`: after the first unlock, on this device.
  public static let afterFirstUnlockThisDeviceOnly = KeyClass(rawValue: 10)
  /// Items of `dku`: always, on this device.
  public static let alwaysThisDeviceOnly = KeyClass(rawValue: 11)
  /// Items of `akpu`: while unlocked and a passcode is set. No backup keybag has this class.
  public static let whenPasscodeSetThisDeviceOnly = KeyClass(rawValue: 12)

  /// The class without the key-generation bits (0x10 and up) that a device's own database may carry.
  public var withoutGeneration: KeyClass { KeyClass(rawValue: rawValue & 0xF) }

  /// The key generation in the upper bits, counted from 0.
  package var generation: UInt32 { rawValue >> 4 }

  public static func < (left: KeyClass, right: KeyClass) -> Bool { left.rawValue < right.rawValue }
}
