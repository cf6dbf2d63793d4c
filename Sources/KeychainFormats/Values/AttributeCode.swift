/// The code of an item's attribute, as columns and blobs spell it. Codes that this project does not know are kept.
///
/// Source: Apple `SecItemConstants.c`.
public struct AttributeCode: RawRepresentable, Sendable, Hashable, Comparable, ExpressibleByStringLiteral {
  /// The first seven bytes, the first one highest, and the length, so that the usual code of four letters is made,
  /// compared and hashed as one number.
  private let prefix: UInt64
  /// The code where `prefix` does not say it all; empty otherwise.
  private let longText: String

  private static let prefixByteCount = 7

  public init(rawValue: String) {
    let prefix = Self.prefix(rawValue.utf8)
    self.init(prefix: prefix, longText: Self.isShort(prefix) ? "" : rawValue)
  }

  private init(prefix: UInt64, longText: String) {
    self.prefix = prefix
    self.longText = longText
  }

  /// The code that UTF-8 bytes spell; `nil` for other bytes.
  init?(utf8 bytes: UnsafeRawBufferPointer) {
    guard bytes.count <= Self.prefixByteCount, bytes.allSatisfy({ $0 < 0x80 }) else {
      guard let text = String(utf8: bytes) else { return nil }
      self.init(rawValue: text)
      return
    }
    self.init(prefix: Self.prefix(bytes), longText: "")
  }

  public init(stringLiteral value: String) { self.init(rawValue: value) }

  public var rawValue: String {
    guard isShort else { return longText }
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
    left.prefix == right.prefix && (left.isShort || left.longText.hasSameBytes(as: right.longText))
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(prefix)
    if !isShort { longText.hashBytes(into: &hasher) }
  }

  /// In the order of the bytes, which agrees with `==`.
  public static func < (left: Self, right: Self) -> Bool {
    left.isShort && right.isShort
      ? left.prefix < right.prefix : left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
  }
}

extension AttributeCode {
  public static let rowID: AttributeCode = "rowid"
  public static let creationDate: AttributeCode = "cdat"
  public static let modificationDate: AttributeCode = "mdat"
  public static let itemDescription: AttributeCode = "desc"
  public static let comment: AttributeCode = "icmt"
  public static let creator: AttributeCode = "crtr"
  public static let type: AttributeCode = "type"
  public static let scriptCode: AttributeCode = "scrp"
  public static let label: AttributeCode = "labl"
  public static let alias: AttributeCode = "alis"
  public static let isInvisible: AttributeCode = "invi"
  public static let isNegative: AttributeCode = "nega"
  public static let hasCustomIcon: AttributeCode = "cusi"
  public static let legacyProtected: AttributeCode = "prot"
  public static let account: AttributeCode = "acct"
  public static let service: AttributeCode = "svce"
  public static let generic: AttributeCode = "gena"
  public static let encryptedData: AttributeCode = "data"
  public static let accessGroup: AttributeCode = "agrp"
  public static let protection: AttributeCode = "pdmn"
  public static let synchronizable: AttributeCode = "sync"
  public static let tombstone: AttributeCode = "tomb"
  public static let digest: AttributeCode = "sha1"
  public static let syncViewHint: AttributeCode = "vwht"
  public static let tokenID: AttributeCode = "tkid"
  public static let valueData: AttributeCode = "v_Data"
  public static let primaryKeyDigest: AttributeCode = "v_pk"
  public static let accessControl: AttributeCode = "accc"
  public static let useTombstone: AttributeCode = "u_Tomb"
  public static let multiUser: AttributeCode = "musr"
  public static let uuid: AttributeCode = "UUID"
  public static let systemBound: AttributeCode = "sysb"
  public static let pcsServiceIdentifier: AttributeCode = "pcss"
  public static let pcsPublicKey: AttributeCode = "pcsk"
  public static let pcsPublicIdentity: AttributeCode = "pcsi"
  public static let persistentReference: AttributeCode = "persistref"
  public static let appClip: AttributeCode = "clip"
  public static let sharingGroup: AttributeCode = "ggrp"
  public static let securityDomain: AttributeCode = "sdmn"
  public static let server: AttributeCode = "srvr"
  public static let protocolType: AttributeCode = "ptcl"
  public static let authenticationType: AttributeCode = "atyp"
  public static let port: AttributeCode = "port"
  public static let path: AttributeCode = "path"
  public static let extraNotes: AttributeCode = "binn"
  public static let extraHistory: AttributeCode = "bini"
  public static let extraClientDefined0: AttributeCode = "bin0"
  public static let extraClientDefined1: AttributeCode = "bin1"
  public static let extraClientDefined2: AttributeCode = "bin2"
  public static let extraClientDefined3: AttributeCode = "bin3"
  public static let certificateType: AttributeCode = "ctyp"
  public static let certificateEncoding: AttributeCode = "cenc"
  public static let subject: AttributeCode = "subj"
  public static let issuer: AttributeCode = "issr"
  public static let serialNumber: AttributeCode = "slnr"
  public static let subjectKeyID: AttributeCode = "skid"
  public static let publicKeyHash: AttributeCode = "pkhh"
  public static let keyClass: AttributeCode = "kcls"
  public static let isPermanent: AttributeCode = "perm"
  public static let isPrivate: AttributeCode = "priv"
  public static let isModifiable: AttributeCode = "modi"
  public static let applicationLabel: AttributeCode = "klbl"
  public static let applicationTag: AttributeCode = "atag"
  public static let keySizeInBits: AttributeCode = "bsiz"
  public static let effectiveKeySize: AttributeCode = "esiz"
  public static let startDate: AttributeCode = "sdat"
  public static let endDate: AttributeCode = "edat"
  public static let isSensitive: AttributeCode = "sens"
  public static let wasAlwaysSensitive: AttributeCode = "asen"
  public static let isExtractable: AttributeCode = "extr"
  public static let wasNeverExtractable: AttributeCode = "next"
  public static let canEncrypt: AttributeCode = "encr"
  public static let canDecrypt: AttributeCode = "decr"
  public static let canDerive: AttributeCode = "drve"
  public static let canSign: AttributeCode = "sign"
  public static let canVerify: AttributeCode = "vrfy"
  public static let canSignRecover: AttributeCode = "snrc"
  public static let canVerifyRecover: AttributeCode = "vyrc"
  public static let canWrap: AttributeCode = "wrap"
  public static let canUnwrap: AttributeCode = "unwp"
}
