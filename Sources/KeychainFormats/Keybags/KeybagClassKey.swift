extension Keybag {
  /// What a bag is for.
  public struct BagType: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The bits that number the type; the two above are flags of device bags.
    static let mask: UInt32 = 0x3FFF_FFFF

    public static let system = BagType(rawValue: 0)
    public static let backup = BagType(rawValue: 1)
    public static let escrow = BagType(rawValue: 2)
    public static let cloudBackup = BagType(rawValue: 3)
    public static let asymmetricBackup = BagType(rawValue: 4)
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

    public static let symmetric = KeyType(rawValue: 0)
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

    public var uuid: [UInt8]? { records.value(of: .uuid).flatMap { $0.count == 16 ? $0 : nil } }

    /// The number as it stands in the bag; bags of devices carry a key generation in its upper bits.
    public var keyClass: KeyClass? { records.word(of: .keyClass).map(KeyClass.init(rawValue:)) }

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

    public var publicKey: [UInt8]? { records.value(of: .publicKey) }
  }
}
