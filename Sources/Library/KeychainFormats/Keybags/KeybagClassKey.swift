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

  /// One class key, wrapped. Reading a field gives `nil` where its record is absent or has another length.
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
