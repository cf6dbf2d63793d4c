import Basics

/// The code of an item's attribute, as columns and blobs spell it. Codes that this project does not know are kept.
///
/// Source: Apple `SecItemConstants.c`.
public struct AttributeCode: RawRepresentable, Sendable, Hashable, Comparable, ExpressibleByStringLiteral {
  /// The first seven bytes, the first one highest, and the length, so that the usual code of four letters is made,
  /// compared and hashed as one number.
  private let prefix: UInt64
  /// The code where `prefix` does not say it all. Shared, and not a `String` of twice the size: thousands of items have ten
  /// codes each.
  private let long: LongText?

  private final class LongText: Sendable {
    let text: String
    init(_ text: String) { self.text = text }
  }

  private static let prefixByteCount = 7

  public init(rawValue: String) {
    let prefix = Self.prefix(rawValue.utf8)
    self.init(prefix: prefix, long: Self.isShort(prefix) ? nil : LongText(rawValue))
  }

  private init(prefix: UInt64, long: LongText?) {
    self.prefix = prefix
    self.long = long
  }

  /// The code that UTF-8 bytes spell; `nil` for other bytes.
  init?(utf8 bytes: UnsafeRawBufferPointer) {
    guard bytes.count <= Self.prefixByteCount, bytes.allSatisfy({ $0 < 0x80 }) else {
      guard let text = String(utf8: bytes) else { return nil }
      self.init(rawValue: text)
      return
    }
    self.init(prefix: Self.prefix(bytes), long: nil)
  }

  /// Creates a code from a literal such as `"acct"`.
  public init(stringLiteral value: String) { self.init(rawValue: value) }

  public var rawValue: String {
    if let long { return long.text }
    return String(unsafeUninitializedCapacity: Self.prefixByteCount) { text in
      let count = Int(prefix & 0xFF)
      for index in 0..<count { text[index] = UInt8(truncatingIfNeeded: prefix >> (56 - 8 * UInt64(index))) }
      return count
    }
  }

  private static func prefix(_ bytes: some Collection<UInt8>) -> UInt64 {
    var prefix: UInt64 = 0
    var count = 0
    for byte in bytes {
      if count < prefixByteCount { prefix |= UInt64(byte) << (56 - 8 * UInt64(count)) }
      count += 1
    }
    return prefix | UInt64(min(count, 0xFF))
  }

  /// Whether a prefix says it all.
  private static func isShort(_ prefix: UInt64) -> Bool { prefix & 0xFF <= UInt64(prefixByteCount) }

  private var isShort: Bool { Self.isShort(prefix) }

  /// Byte for byte; `String` also takes composed and decomposed letters as equal, and a code may hold any.
  public static func == (left: Self, right: Self) -> Bool {
    left.prefix == right.prefix && (left.isShort || left.rawValue.hasSameBytes(as: right.rawValue))
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(prefix)
    long?.text.hashBytes(into: &hasher)
  }

  /// Returns the index of the first code that equals `code`; `nil` if there is none.
  @usableFromInline static func place(of code: AttributeCode, in codes: [AttributeCode]) -> Int? {
    codes.withUnsafeBufferPointer { codes in
      for place in codes.indices where codes[place].prefix == code.prefix {
        // Of a short code its prefix is all there is, and nothing else of either is touched.
        if code.isShort || codes[place] == code { return place }
      }
      return nil
    }
  }

  /// In the order of the bytes, which agrees with `==`.
  public static func < (left: Self, right: Self) -> Bool {
    left.isShort && right.isShort
      ? left.prefix < right.prefix : left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
  }
}

extension AttributeCode {
  /// The row's number in its table; unique in the database, and in no blob.
  public static let rowID: AttributeCode = "rowid"
  /// When the item was made (`kSecAttrCreationDate`).
  public static let creationDate: AttributeCode = "cdat"
  /// When it was last changed (`kSecAttrModificationDate`); decides between two items of one primary key.
  public static let modificationDate: AttributeCode = "mdat"
  /// A person's words for the kind of item, "Wi-Fi password" for example (`kSecAttrDescription`).
  public static let itemDescription: AttributeCode = "desc"
  /// A person's note on the item (`kSecAttrComment`).
  public static let comment: AttributeCode = "icmt"
  /// The four-character number of the app that made it (`kSecAttrCreator`); of a key part of the primary key.
  public static let creator: AttributeCode = "crtr"
  /// The four-character number of its type (`kSecAttrType`); of a key the algorithm (`kSecAttrKeyType`), and in the
  /// primary key.
  public static let type: AttributeCode = "type"
  /// The script of the text, from classic Mac OS (`kSecAttrScriptCode`).
  public static let scriptCode: AttributeCode = "scrp"
  /// The name that a person sees (`kSecAttrLabel`).
  public static let label: AttributeCode = "labl"
  /// Another name of the item (`kSecAttrAlias`).
  public static let alias: AttributeCode = "alis"
  /// 1 where the item is not to be shown to a person (`kSecAttrIsInvisible`).
  public static let isInvisible: AttributeCode = "invi"
  /// 1 where the item says that there is no password to keep (`kSecAttrIsNegative`).
  public static let isNegative: AttributeCode = "nega"
  /// 1 where the item has a picture of its own (`kSecAttrHasCustomIcon`).
  public static let hasCustomIcon: AttributeCode = "cusi"
  /// `prot`, data that Apple's schema keeps without a public constant.
  public static let legacyProtected: AttributeCode = "prot"
  /// The account, part of a password's primary key (`kSecAttrAccount`).
  public static let account: AttributeCode = "acct"
  /// The service, part of a generic password's primary key (`kSecAttrService`).
  public static let service: AttributeCode = "svce"
  /// Data of the app's own, in clear for queries and no secret (`kSecAttrGeneric`).
  public static let generic: AttributeCode = "gena"
  /// The column of the sealed item; no attribute of an item in clear.
  public static let encryptedData: AttributeCode = "data"
  /// Which apps share the item, part of the primary key (`kSecAttrAccessGroup`).
  public static let accessGroup: AttributeCode = "agrp"
  /// The code of the protection class (`kSecAttrAccessible`), which the sealed blob has to repeat.
  public static let protection: AttributeCode = "pdmn"
  /// 1 where the item travels by iCloud Keychain; part of the primary key (`kSecAttrSynchronizable`).
  public static let synchronizable: AttributeCode = "sync"
  /// 1 where the item was deleted and the row tells other devices so (`kSecAttrTombstone`).
  public static let tombstone: AttributeCode = "tomb"
  /// SHA-1 of the item's attributes and secret, twenty bytes (`kSecAttrSHA1`).
  public static let digest: AttributeCode = "sha1"
  /// The part of iCloud Keychain that carries the item (`kSecAttrSyncViewHint`); part of the primary key.
  public static let syncViewHint: AttributeCode = "vwht"
  /// The token that holds the real key (`kSecAttrTokenID`); such an item is in no backup.
  public static let tokenID: AttributeCode = "tkid"
  /// The secret: a password, a DER certificate, the bytes of a key (`kSecValueData`).
  public static let valueData: AttributeCode = "v_Data"
  /// The digest of the primary key, computed and never stored.
  public static let primaryKeyDigest: AttributeCode = "v_pk"
  /// The access control, as a device serializes it (`kSecAttrAccessControl`); no backup has an item with one.
  public static let accessControl: AttributeCode = "accc"
  /// Whether deleting leaves a tombstone; a query says it, no item stores it (`kSecUseTombstones`).
  public static let useTombstone: AttributeCode = "u_Tomb"
  /// The user of a Shared iPad, empty or sixteen bytes; part of the primary key (`kSecAttrMultiUser`).
  public static let multiUser: AttributeCode = "musr"
  /// The item's own UUID in text, which a restore keeps (`kSecAttrUUID`).
  public static let uuid: AttributeCode = "UUID"
  /// Non-zero where every device keeps its own such item (`kSecAttrSysBound`); it is in no backup.
  public static let systemBound: AttributeCode = "sysb"
  /// The service number of Protected Cloud Storage, in clear (`kSecAttrPCSPlaintextServiceIdentifier`).
  public static let pcsServiceIdentifier: AttributeCode = "pcss"
  /// Its public key, in clear (`kSecAttrPCSPlaintextPublicKey`).
  public static let pcsPublicKey: AttributeCode = "pcsk"
  /// Its public identity, in clear (`kSecAttrPCSPlaintextPublicIdentity`).
  public static let pcsPublicIdentity: AttributeCode = "pcsi"
  /// Sixteen bytes that an app's lasting handle names (`kSecAttrPersistentReference`); a restore keeps them.
  public static let persistentReference: AttributeCode = "persistref"
  /// 1 where an App Clip made the item (`kSecAttrAppClipItem`); it is in no backup.
  public static let appClip: AttributeCode = "clip"
  /// The group that shares the item, empty for one's own (`kSecAttrSharingGroup`); a shared copy is in no backup.
  public static let sharingGroup: AttributeCode = "ggrp"
  /// The realm of an internet password, part of its primary key (`kSecAttrSecurityDomain`).
  public static let securityDomain: AttributeCode = "sdmn"
  /// The host, part of an internet password's primary key (`kSecAttrServer`).
  public static let server: AttributeCode = "srvr"
  /// The protocol in four characters, `htps` for example, part of the primary key (`InternetProtocol`,
  /// `kSecAttrProtocol`).
  public static let protocolType: AttributeCode = "ptcl"
  /// The scheme of authentication, part of the primary key (`kSecAttrAuthenticationType`).
  public static let authenticationType: AttributeCode = "atyp"
  /// The port, part of the primary key; 0 where none was given (`kSecAttrPort`).
  public static let port: AttributeCode = "port"
  /// The path, part of the primary key (`kSecAttrPath`).
  public static let path: AttributeCode = "path"
  /// A person's notes on a password, sealed as a secret (`kSecDataInetExtraNotes`).
  public static let extraNotes: AttributeCode = "binn"
  /// Earlier passwords, sealed as a secret (`kSecDataInetExtraHistory`).
  public static let extraHistory: AttributeCode = "bini"
  /// Data of the client's own, sealed as a secret (`kSecDataInetExtraClientDefined0`).
  public static let extraClientDefined0: AttributeCode = "bin0"
  /// The same, a second value.
  public static let extraClientDefined1: AttributeCode = "bin1"
  /// The same, a third value.
  public static let extraClientDefined2: AttributeCode = "bin2"
  /// The same, a fourth value.
  public static let extraClientDefined3: AttributeCode = "bin3"
  /// The X.509 version, 3; part of a certificate's primary key (`kSecAttrCertificateType`).
  public static let certificateType: AttributeCode = "ctyp"
  /// The encoding of a certificate, 3 for DER (`kSecAttrCertificateEncoding`).
  public static let certificateEncoding: AttributeCode = "cenc"
  /// The subject's Name without its outer tag, in Apple's normal form (`kSecAttrSubject`).
  public static let subject: AttributeCode = "subj"
  /// The issuer's Name in the same form, part of the primary key (`kSecAttrIssuer`).
  public static let issuer: AttributeCode = "issr"
  /// The contents of the serial number's INTEGER, part of the primary key (`kSecAttrSerialNumber`).
  public static let serialNumber: AttributeCode = "slnr"
  /// The subject key identifier of the certificate's extension (`kSecAttrSubjectKeyID`).
  public static let subjectKeyID: AttributeCode = "skid"
  /// SHA-1 of the certificate's public key; equals the `klbl` of its private key (`kSecAttrPublicKeyHash`).
  public static let publicKeyHash: AttributeCode = "pkhh"
  /// 0 for a public key, 1 for a private, 2 for a symmetric one; part of the primary key (`kSecAttrKeyClass`).
  public static let keyClass: AttributeCode = "kcls"
  /// 1 where a key is kept for good (`kSecAttrIsPermanent`).
  public static let isPermanent: AttributeCode = "perm"
  /// 1 for a private key; with a certificate of the same public key it is an identity (`kSecAttrIsPrivate`).
  public static let isPrivate: AttributeCode = "priv"
  /// 1 where the key may be changed (`kSecAttrIsModifiable`).
  public static let isModifiable: AttributeCode = "modi"
  /// SHA-1 of the public key, part of the primary key (`kSecAttrApplicationLabel`).
  public static let applicationLabel: AttributeCode = "klbl"
  /// The app's own name for a key, part of the primary key (`kSecAttrApplicationTag`).
  public static let applicationTag: AttributeCode = "atag"
  /// The length of a key in bits, part of the primary key (`kSecAttrKeySizeInBits`).
  public static let keySizeInBits: AttributeCode = "bsiz"
  /// The effective length in bits, part of the primary key (`kSecAttrEffectiveKeySize`).
  public static let effectiveKeySize: AttributeCode = "esiz"
  /// The date from which a key may be used, part of the primary key (`kSecAttrStartDate`).
  public static let startDate: AttributeCode = "sdat"
  /// The date until which it may be used, part of the primary key (`kSecAttrEndDate`).
  public static let endDate: AttributeCode = "edat"
  /// 1 where a key leaves only wrapped (`kSecAttrIsSensitive`).
  public static let isSensitive: AttributeCode = "sens"
  /// 1 where that was always so (`kSecAttrWasAlwaysSensitive`).
  public static let wasAlwaysSensitive: AttributeCode = "asen"
  /// 1 where a key may be taken out (`kSecAttrIsExtractable`).
  public static let isExtractable: AttributeCode = "extr"
  /// 1 where it never could be (`kSecAttrWasNeverExtractable`).
  public static let wasNeverExtractable: AttributeCode = "next"
  /// 1 where the key encrypts (`kSecAttrCanEncrypt`).
  public static let canEncrypt: AttributeCode = "encr"
  /// 1 where the key decrypts (`kSecAttrCanDecrypt`).
  public static let canDecrypt: AttributeCode = "decr"
  /// 1 where other keys are derived from it (`kSecAttrCanDerive`).
  public static let canDerive: AttributeCode = "drve"
  /// 1 where the key signs (`kSecAttrCanSign`).
  public static let canSign: AttributeCode = "sign"
  /// 1 where the key verifies signatures (`kSecAttrCanVerify`).
  public static let canVerify: AttributeCode = "vrfy"
  /// 1 where the key signs with message recovery (`kSecAttrCanSignRecover`).
  public static let canSignRecover: AttributeCode = "snrc"
  /// 1 where the key verifies such signatures (`kSecAttrCanVerifyRecover`).
  public static let canVerifyRecover: AttributeCode = "vyrc"
  /// 1 where the key wraps other keys (`kSecAttrCanWrap`).
  public static let canWrap: AttributeCode = "wrap"
  /// 1 where the key unwraps them (`kSecAttrCanUnwrap`).
  public static let canUnwrap: AttributeCode = "unwp"
}
