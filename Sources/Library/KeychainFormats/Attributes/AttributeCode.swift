import Basics

/// The code of an item's attribute, as in columns and blobs. Unknown codes are supported.
///
/// Source: Apple `SecItemConstants.c`.
public struct AttributeCode: RawRepresentable, Sendable, Hashable, Comparable, ExpressibleByStringLiteral {
  /// The code's first seven bytes, starting at the most significant byte, and the code's length in the lowest byte.
  /// Most codes have four letters, so usually only the prefix has to be created, compared and hashed.
  private let prefix: UInt64
  /// The code if it does not fit into `prefix`. It is an object, because a reference is half the size of a `String`, and
  /// thousands of items have ten codes each.
  private let longText: LongText?

  private final class LongText: Sendable {
    let text: String
    init(_ text: String) { self.text = text }
  }

  private static let prefixByteCount = 7

  /// Creates a code from its text, such as `acct`.
  public init(rawValue: String) {
    let prefix = Self.prefix(rawValue.utf8)
    self.init(prefix: prefix, longText: Self.isShort(prefix) ? nil : LongText(rawValue))
  }

  private init(prefix: UInt64, longText: LongText?) {
    self.prefix = prefix
    self.longText = longText
  }

  /// Creates a code from UTF-8, or `nil` if the bytes are not UTF-8.
  init?(utf8 bytes: UnsafeRawBufferPointer) {
    guard bytes.count <= Self.prefixByteCount, bytes.allSatisfy({ $0 < 0x80 }) else {
      guard let text = String(utf8: bytes) else { return nil }
      self.init(rawValue: text)
      return
    }
    self.init(prefix: Self.prefix(bytes), longText: nil)
  }

  /// Creates a code from a literal such as `"acct"`.
  public init(stringLiteral value: String) { self.init(rawValue: value) }

  /// The text of the code, such as `acct`.
  public var rawValue: String {
    if let longText { return longText.text }
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

  /// Returns whether a prefix contains the complete code.
  private static func isShort(_ prefix: UInt64) -> Bool { prefix & 0xFF <= UInt64(prefixByteCount) }

  private var isShort: Bool { Self.isShort(prefix) }

  /// Compares the bytes; `String` would also treat composed and decomposed letters as equal.
  public static func == (left: Self, right: Self) -> Bool {
    left.prefix == right.prefix && (left.isShort || left.rawValue.hasSameBytes(as: right.rawValue))
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(prefix)
    longText?.text.hashBytes(into: &hasher)
  }

  /// Returns the index of the first code that equals `code`, or `nil` if there is none.
  @usableFromInline static func index(of code: AttributeCode, in codes: [AttributeCode]) -> Int? {
    codes.withUnsafeBufferPointer { codes in
      for index in codes.indices where codes[index].prefix == code.prefix {
        // The prefix of a short code is the complete code, so nothing else has to be read.
        if code.isShort || codes[index] == code { return index }
      }
      return nil
    }
  }

  /// Orders codes by their bytes, consistently with `==`.
  public static func < (left: Self, right: Self) -> Bool {
    left.isShort && right.isShort
      ? left.prefix < right.prefix : left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
  }
}

extension AttributeCode {
  /// The number of the row in its table; only in the database.
  package static let rowID: AttributeCode = "rowid"
  /// The date on which the item was created (`kSecAttrCreationDate`).
  package static let creationDate: AttributeCode = "cdat"
  /// The date of the last change (`kSecAttrModificationDate`), which decides between two items with the same primary
  /// key.
  package static let modificationDate: AttributeCode = "mdat"
  /// The user's description of the kind of item, such as "Wi-Fi password" (`kSecAttrDescription`).
  package static let itemDescription: AttributeCode = "desc"
  /// The user's note on the item (`kSecAttrComment`).
  package static let comment: AttributeCode = "icmt"
  /// The four-character code of the app that created the item (`kSecAttrCreator`); part of a key's primary key.
  package static let creator: AttributeCode = "crtr"
  /// The four-character code of the item's type (`kSecAttrType`). For a key, its algorithm (`kSecAttrKeyType`) and part
  /// of the primary key.
  package static let type: AttributeCode = "type"
  /// The script of the text, from classic Mac OS (`kSecAttrScriptCode`).
  package static let scriptCode: AttributeCode = "scrp"
  /// The name that users see (`kSecAttrLabel`).
  package static let label: AttributeCode = "labl"
  /// An alternative name (`kSecAttrAlias`).
  package static let alias: AttributeCode = "alis"
  /// 1 if the item is not shown to the user (`kSecAttrIsInvisible`).
  package static let isInvisible: AttributeCode = "invi"
  /// 1 if no password is to be stored for the account (`kSecAttrIsNegative`).
  package static let isNegative: AttributeCode = "nega"
  /// 1 if the item has a custom icon (`kSecAttrHasCustomIcon`).
  package static let hasCustomIcon: AttributeCode = "cusi"
  /// Data for which Apple's schema has a column, but no public constant.
  package static let legacyProtected: AttributeCode = "prot"
  /// The account; part of a password's primary key (`kSecAttrAccount`).
  public static let account: AttributeCode = "acct"
  /// The service; part of a generic password's primary key (`kSecAttrService`).
  public static let service: AttributeCode = "svce"
  /// The app's own data, which is searchable and not secret (`kSecAttrGeneric`).
  package static let generic: AttributeCode = "gena"
  /// The column of the encrypted item; not an attribute of a decrypted item.
  package static let encryptedData: AttributeCode = "data"
  /// The group of apps that share the item; part of the primary key (`kSecAttrAccessGroup`).
  package static let accessGroup: AttributeCode = "agrp"
  /// The code of the protection class (`kSecAttrAccessible`), which the encrypted blob repeats.
  package static let protection: AttributeCode = "pdmn"
  /// 1 if iCloud Keychain synchronizes the item; part of the primary key (`kSecAttrSynchronizable`).
  package static let synchronizable: AttributeCode = "sync"
  /// 1 if the item was deleted and the row is a tombstone for other devices (`kSecAttrTombstone`).
  package static let tombstone: AttributeCode = "tomb"
  /// The SHA-1 of the item's attributes and secret, 20 bytes (`kSecAttrSHA1`).
  package static let digest: AttributeCode = "sha1"
  /// The iCloud Keychain view that synchronizes the item; part of the primary key (`kSecAttrSyncViewHint`).
  package static let syncViewHint: AttributeCode = "vwht"
  /// The identifier of the token that stores the actual key (`kSecAttrTokenID`); such an item is in no backup.
  package static let tokenID: AttributeCode = "tkid"
  /// The secret: a password, a DER certificate, the bytes of a key (`kSecValueData`).
  package static let valueData: AttributeCode = "v_Data"
  /// The digest of the primary key, which is computed and never stored.
  package static let primaryKeyDigest: AttributeCode = "v_pk"
  /// The access control as a device serializes it (`kSecAttrAccessControl`). No backup has such an item.
  package static let accessControl: AttributeCode = "accc"
  /// Whether deleting the item leaves a tombstone; only in queries (`kSecUseTombstones`).
  package static let useTombstone: AttributeCode = "u_Tomb"
  /// The user of a Shared iPad, 0 or 16 bytes; part of the primary key (`kSecAttrMultiUser`).
  package static let multiUser: AttributeCode = "musr"
  /// The item's UUID as text, which a restore keeps (`kSecAttrUUID`).
  package static let uuid: AttributeCode = "UUID"
  /// Not 0 if the item belongs to the system of one device (`kSecAttrSysBound`); such an item is in no backup.
  package static let systemBound: AttributeCode = "sysb"
  /// The unencrypted service number of Protected Cloud Storage (`kSecAttrPCSPlaintextServiceIdentifier`).
  package static let pcsServiceIdentifier: AttributeCode = "pcss"
  /// The unencrypted public key of Protected Cloud Storage (`kSecAttrPCSPlaintextPublicKey`).
  package static let pcsPublicKey: AttributeCode = "pcsk"
  /// The unencrypted public identity of Protected Cloud Storage (`kSecAttrPCSPlaintextPublicIdentity`).
  package static let pcsPublicIdentity: AttributeCode = "pcsi"
  /// The 16 bytes in an item's persistent reference (`kSecAttrPersistentReference`), which a restore keeps.
  package static let persistentReference: AttributeCode = "persistref"
  /// 1 if an App Clip created the item (`kSecAttrAppClipItem`); such an item is in no backup.
  package static let appClip: AttributeCode = "clip"
  /// The group that shares the item, or empty text (`kSecAttrSharingGroup`); a shared copy is in no backup.
  package static let sharingGroup: AttributeCode = "ggrp"
  /// The realm; part of an internet password's primary key (`kSecAttrSecurityDomain`).
  package static let securityDomain: AttributeCode = "sdmn"
  /// The host; part of an internet password's primary key (`kSecAttrServer`).
  package static let server: AttributeCode = "srvr"
  /// The protocol in four characters, such as `htps`; part of the primary key (`InternetProtocol`, `kSecAttrProtocol`).
  package static let protocolType: AttributeCode = "ptcl"
  /// The authentication scheme; part of the primary key (`kSecAttrAuthenticationType`).
  package static let authenticationType: AttributeCode = "atyp"
  /// The port, or 0 if there is none; part of the primary key (`kSecAttrPort`).
  package static let port: AttributeCode = "port"
  /// The path; part of the primary key (`kSecAttrPath`).
  package static let path: AttributeCode = "path"
  /// The user's notes on a password, encrypted like a secret (`kSecDataInetExtraNotes`).
  package static let extraNotes: AttributeCode = "binn"
  /// Earlier passwords, encrypted like a secret (`kSecDataInetExtraHistory`).
  package static let extraHistory: AttributeCode = "bini"
  /// Data that the app defines, encrypted like a secret (`kSecDataInetExtraClientDefined0`).
  package static let extraClientDefined0: AttributeCode = "bin0"
  /// Data that the app defines (`kSecDataInetExtraClientDefined1`).
  package static let extraClientDefined1: AttributeCode = "bin1"
  /// Data that the app defines (`kSecDataInetExtraClientDefined2`).
  package static let extraClientDefined2: AttributeCode = "bin2"
  /// Data that the app defines (`kSecDataInetExtraClientDefined3`).
  package static let extraClientDefined3: AttributeCode = "bin3"
  /// The X.509 version, such as 3; part of a certificate's primary key (`kSecAttrCertificateType`).
  package static let certificateType: AttributeCode = "ctyp"
  /// The encoding of a certificate; 3 is DER (`kSecAttrCertificateEncoding`).
  package static let certificateEncoding: AttributeCode = "cenc"
  /// The subject's Name without its outer tag, normalized as Apple does (`kSecAttrSubject`).
  package static let subject: AttributeCode = "subj"
  /// The issuer's Name, normalized in the same way; part of the primary key (`kSecAttrIssuer`).
  package static let issuer: AttributeCode = "issr"
  /// The contents of the serial number's INTEGER; part of the primary key (`kSecAttrSerialNumber`).
  package static let serialNumber: AttributeCode = "slnr"
  /// The subject key identifier from the certificate's extension (`kSecAttrSubjectKeyID`).
  package static let subjectKeyID: AttributeCode = "skid"
  /// The SHA-1 of the certificate's public key; equals the `klbl` of its private key (`kSecAttrPublicKeyHash`).
  package static let publicKeyHash: AttributeCode = "pkhh"
  /// 0 for a public key, 1 for a private key, 2 for a symmetric key; part of the primary key (`kSecAttrKeyClass`).
  package static let keyClass: AttributeCode = "kcls"
  /// 1 if the key is stored permanently (`kSecAttrIsPermanent`).
  package static let isPermanent: AttributeCode = "perm"
  /// 1 for a private key (`kSecAttrIsPrivate`). With a certificate for its public key, it forms an identity.
  package static let isPrivate: AttributeCode = "priv"
  /// 1 if the key may be modified (`kSecAttrIsModifiable`).
  package static let isModifiable: AttributeCode = "modi"
  /// The SHA-1 of the public key; part of the primary key (`kSecAttrApplicationLabel`).
  package static let applicationLabel: AttributeCode = "klbl"
  /// The app's own name for the key; part of the primary key (`kSecAttrApplicationTag`).
  package static let applicationTag: AttributeCode = "atag"
  /// The size of the key in bits; part of the primary key (`kSecAttrKeySizeInBits`).
  package static let keySizeInBits: AttributeCode = "bsiz"
  /// The effective size in bits; part of the primary key (`kSecAttrEffectiveKeySize`).
  package static let effectiveKeySize: AttributeCode = "esiz"
  /// The date from which the key may be used; part of the primary key (`kSecAttrStartDate`).
  package static let startDate: AttributeCode = "sdat"
  /// The date until which the key may be used; part of the primary key (`kSecAttrEndDate`).
  package static let endDate: AttributeCode = "edat"
  /// 1 if the key can be exported only in wrapped form (`kSecAttrIsSensitive`).
  package static let isSensitive: AttributeCode = "sens"
  /// 1 if the key has always been sensitive (`kSecAttrWasAlwaysSensitive`).
  package static let wasAlwaysSensitive: AttributeCode = "asen"
  /// 1 if the key can be exported (`kSecAttrIsExtractable`).
  package static let isExtractable: AttributeCode = "extr"
  /// 1 if the key could never be exported (`kSecAttrWasNeverExtractable`).
  package static let wasNeverExtractable: AttributeCode = "next"
  /// 1 if the key can encrypt (`kSecAttrCanEncrypt`).
  package static let canEncrypt: AttributeCode = "encr"
  /// 1 if the key can decrypt (`kSecAttrCanDecrypt`).
  package static let canDecrypt: AttributeCode = "decr"
  /// 1 if other keys can be derived from the key (`kSecAttrCanDerive`).
  package static let canDerive: AttributeCode = "drve"
  /// 1 if the key can sign (`kSecAttrCanSign`).
  package static let canSign: AttributeCode = "sign"
  /// 1 if the key can verify signatures (`kSecAttrCanVerify`).
  package static let canVerify: AttributeCode = "vrfy"
  /// 1 if the key can sign with message recovery (`kSecAttrCanSignRecover`).
  package static let canSignRecover: AttributeCode = "snrc"
  /// 1 if the key can verify signatures with message recovery (`kSecAttrCanVerifyRecover`).
  package static let canVerifyRecover: AttributeCode = "vyrc"
  /// 1 if the key can wrap other keys (`kSecAttrCanWrap`).
  package static let canWrap: AttributeCode = "wrap"
  /// 1 if the key can unwrap other keys (`kSecAttrCanUnwrap`).
  package static let canUnwrap: AttributeCode = "unwp"
}
