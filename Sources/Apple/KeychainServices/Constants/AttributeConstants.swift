// Names of items' attributes.
// Source: Apple `SecItem.h`, `SecItemConstants.c`, and the Mac's file of its own constants.

import Basics
public import Foundation

// MARK: Every class

/// When the item may be read and how far it may travel: one of the values `kSecAttrAccessible…`.
nonisolated(unsafe) public let kSecAttrAccessible: CFString = "pdmn"
/// A `SecAccessControl`: the protection class and what a person has to do before the item opens.
nonisolated(unsafe) public let kSecAttrAccessControl: CFString = "accc"
/// Which apps share the item, part of the primary key.
nonisolated(unsafe) public let kSecAttrAccessGroup: CFString = "agrp"
/// 1 where the item travels by iCloud Keychain; part of the primary key.
nonisolated(unsafe) public let kSecAttrSynchronizable: CFString = "sync"
/// The value of `kSecAttrSynchronizable` by which a query finds both kinds of item; without it local ones alone.
nonisolated(unsafe) public let kSecAttrSynchronizableAny: CFString = "syna"
/// When the item was made.
nonisolated(unsafe) public let kSecAttrCreationDate: CFString = "cdat"
/// When it was last changed; decides between two items of one primary key.
nonisolated(unsafe) public let kSecAttrModificationDate: CFString = "mdat"
/// The name that a person sees.
nonisolated(unsafe) public let kSecAttrLabel: CFString = "labl"
/// Another name of the item.
nonisolated(unsafe) public let kSecAttrAlias: CFString = "alis"
/// The token that holds the real key; such an item is in no backup.
nonisolated(unsafe) public let kSecAttrTokenID: CFString = "tkid"
/// The value of `kSecAttrTokenID` for the Secure Enclave.
nonisolated(unsafe) public let kSecAttrTokenIDSecureEnclave: CFString = "com.apple.setoken"
/// The group of items on a token, which every app may read by name and none may write to.
nonisolated(unsafe) public let kSecAttrAccessGroupToken: CFString = "com.apple.token"
/// The part of iCloud Keychain that carries the item; part of the primary key.
nonisolated(unsafe) public let kSecAttrSyncViewHint: CFString = "vwht"
/// Sixteen bytes that an app's lasting handle names; a restore keeps them.
nonisolated(unsafe) public let kSecAttrPersistentReference: CFString = "persistref"
/// Apple's former spelling of `kSecAttrPersistentReference`, with the same value.
nonisolated(unsafe) public let kSecAttrPersistantReference: CFString = "persistref"

// MARK: Passwords

/// A person's words for the kind of item, "Wi-Fi password" for example.
nonisolated(unsafe) public let kSecAttrDescription: CFString = "desc"
/// A person's note on the item.
nonisolated(unsafe) public let kSecAttrComment: CFString = "icmt"
/// The four-character number of the app that made the item.
nonisolated(unsafe) public let kSecAttrCreator: CFString = "crtr"
/// The four-character number of the item's type.
nonisolated(unsafe) public let kSecAttrType: CFString = "type"
/// The script of the text, from classic Mac OS.
nonisolated(unsafe) public let kSecAttrScriptCode: CFString = "scrp"
/// 1 where the item is not to be shown to a person.
nonisolated(unsafe) public let kSecAttrIsInvisible: CFString = "invi"
/// 1 where the item says that there is no password to keep.
nonisolated(unsafe) public let kSecAttrIsNegative: CFString = "nega"
/// 1 where the item has a picture of its own.
nonisolated(unsafe) public let kSecAttrHasCustomIcon: CFString = "cusi"
/// The account, part of a password's primary key.
nonisolated(unsafe) public let kSecAttrAccount: CFString = "acct"
/// The service, part of a generic password's primary key.
nonisolated(unsafe) public let kSecAttrService: CFString = "svce"
/// Data of the app's own, in clear for queries and no secret.
nonisolated(unsafe) public let kSecAttrGeneric: CFString = "gena"
/// The realm of an internet password, part of its primary key.
nonisolated(unsafe) public let kSecAttrSecurityDomain: CFString = "sdmn"
/// The host, part of an internet password's primary key.
nonisolated(unsafe) public let kSecAttrServer: CFString = "srvr"
/// The protocol in four characters, `htps` for example, part of the primary key.
nonisolated(unsafe) public let kSecAttrProtocol: CFString = "ptcl"
/// The scheme of authentication, part of the primary key.
nonisolated(unsafe) public let kSecAttrAuthenticationType: CFString = "atyp"
/// The port, part of the primary key; 0 where none was given.
nonisolated(unsafe) public let kSecAttrPort: CFString = "port"
/// The path, part of the primary key.
nonisolated(unsafe) public let kSecAttrPath: CFString = "path"
/// A person's notes on a password, sealed as a secret.
nonisolated(unsafe) public let kSecDataInetExtraNotes: CFString = "binn"
/// Earlier passwords, sealed as a secret.
nonisolated(unsafe) public let kSecDataInetExtraHistory: CFString = "bini"
/// Data of the client's own, sealed as a secret.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined0: CFString = "bin0"
/// Data of the client's own, a second value.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined1: CFString = "bin1"
/// Data of the client's own, a third value.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined2: CFString = "bin2"
/// Data of the client's own, a fourth value.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined3: CFString = "bin3"

// MARK: Certificates

/// The subject's Name without its outer tag, in Apple's normal form.
nonisolated(unsafe) public let kSecAttrSubject: CFString = "subj"
/// The issuer's Name in the same form, part of the primary key.
nonisolated(unsafe) public let kSecAttrIssuer: CFString = "issr"
/// The contents of the serial number's INTEGER, part of the primary key.
nonisolated(unsafe) public let kSecAttrSerialNumber: CFString = "slnr"
/// The subject key identifier of the certificate's extension.
nonisolated(unsafe) public let kSecAttrSubjectKeyID: CFString = "skid"
/// SHA-1 of the certificate's public key; equals the `kSecAttrApplicationLabel` of its private key.
nonisolated(unsafe) public let kSecAttrPublicKeyHash: CFString = "pkhh"
/// The X.509 version, 3; part of a certificate's primary key.
nonisolated(unsafe) public let kSecAttrCertificateType: CFString = "ctyp"
/// The encoding of a certificate, 3 for DER.
nonisolated(unsafe) public let kSecAttrCertificateEncoding: CFString = "cenc"

// MARK: Keys

/// The half of a pair, one of the three values below; part of the primary key.
nonisolated(unsafe) public let kSecAttrKeyClass: CFString = "kcls"
/// SHA-1 of the public key, part of the primary key.
nonisolated(unsafe) public let kSecAttrApplicationLabel: CFString = "klbl"
/// The app's own name for a key, part of the primary key.
nonisolated(unsafe) public let kSecAttrApplicationTag: CFString = "atag"
/// 1 where a key is kept for good.
nonisolated(unsafe) public let kSecAttrIsPermanent: CFString = "perm"
/// 1 for a private key; with a certificate of the same public key it is an identity.
nonisolated(unsafe) public let kSecAttrIsPrivate: CFString = "priv"
/// 1 where the key may be changed.
nonisolated(unsafe) public let kSecAttrIsModifiable: CFString = "modi"
/// The four-character number of the app that made the key; part of the primary key.
nonisolated(unsafe) public let kSecAttrKeyCreator: CFString = "crtr"
/// The algorithm of a key, one of the values below; part of the primary key.
nonisolated(unsafe) public let kSecAttrKeyType: CFString = "type"
/// The length of a key in bits, part of the primary key.
nonisolated(unsafe) public let kSecAttrKeySizeInBits: CFString = "bsiz"
/// The effective length in bits, part of the primary key.
nonisolated(unsafe) public let kSecAttrEffectiveKeySize: CFString = "esiz"
/// The date from which a key may be used, part of the primary key.
nonisolated(unsafe) public let kSecAttrStartDate: CFString = "sdat"
/// The date until which it may be used, part of the primary key.
nonisolated(unsafe) public let kSecAttrEndDate: CFString = "edat"
/// 1 where a key leaves only wrapped.
nonisolated(unsafe) public let kSecAttrIsSensitive: CFString = "sens"
/// 1 where that was always so.
nonisolated(unsafe) public let kSecAttrWasAlwaysSensitive: CFString = "asen"
/// 1 where a key may be taken out.
nonisolated(unsafe) public let kSecAttrIsExtractable: CFString = "extr"
/// 1 where it never could be.
nonisolated(unsafe) public let kSecAttrWasNeverExtractable: CFString = "next"
/// 1 where the key encrypts.
nonisolated(unsafe) public let kSecAttrCanEncrypt: CFString = "encr"
/// 1 where the key decrypts.
nonisolated(unsafe) public let kSecAttrCanDecrypt: CFString = "decr"
/// 1 where other keys are derived from it.
nonisolated(unsafe) public let kSecAttrCanDerive: CFString = "drve"
/// 1 where the key signs.
nonisolated(unsafe) public let kSecAttrCanSign: CFString = "sign"
/// 1 where the key verifies signatures.
nonisolated(unsafe) public let kSecAttrCanVerify: CFString = "vrfy"
/// 1 where the key signs with message recovery.
nonisolated(unsafe) public let kSecAttrCanSignRecover: CFString = "snrc"
/// 1 where the key verifies such signatures.
nonisolated(unsafe) public let kSecAttrCanVerifyRecover: CFString = "vyrc"
/// 1 where the key wraps other keys.
nonisolated(unsafe) public let kSecAttrCanWrap: CFString = "wrap"
/// 1 where the key unwraps them.
nonisolated(unsafe) public let kSecAttrCanUnwrap: CFString = "unwp"
/// The attributes of the private half, in the dictionary that makes a pair of keys.
nonisolated(unsafe) public let kSecPrivateKeyAttrs: CFString = "private"
/// The attributes of the public half, in the dictionary that makes a pair of keys.
nonisolated(unsafe) public let kSecPublicKeyAttrs: CFString = "public"

// MARK: Values of a key's class

/// The public half of a pair.
nonisolated(unsafe) public let kSecAttrKeyClassPublic: CFString = "0"
/// The private half of a pair.
nonisolated(unsafe) public let kSecAttrKeyClassPrivate: CFString = "1"
/// A key that is no half of a pair.
nonisolated(unsafe) public let kSecAttrKeyClassSymmetric: CFString = "2"

// MARK: Values of a key's type

/// RSA.
nonisolated(unsafe) public let kSecAttrKeyTypeRSA: CFString = "42"
/// Apple's former name of `kSecAttrKeyTypeECSECPrimeRandom`, with the same value.
nonisolated(unsafe) public let kSecAttrKeyTypeEC: CFString = "73"
/// A key on P-256, P-384 or P-521.
nonisolated(unsafe) public let kSecAttrKeyTypeECSECPrimeRandom: CFString = "73"
/// The Mac's name of `kSecAttrKeyTypeECSECPrimeRandom`, with the same value.
nonisolated(unsafe) public let kSecAttrKeyTypeECDSA: CFString = "73"

// MARK: Values of a key's type that are stored and found, and with which nothing is computed here. Apple has them on the Mac.

/// AES.
nonisolated(unsafe) public let kSecAttrKeyTypeAES: CFString = "2147483649"
/// DES.
nonisolated(unsafe) public let kSecAttrKeyTypeDES: CFString = "14"
/// Triple DES.
nonisolated(unsafe) public let kSecAttrKeyType3DES: CFString = "17"
/// RC2.
nonisolated(unsafe) public let kSecAttrKeyTypeRC2: CFString = "23"
/// RC4.
nonisolated(unsafe) public let kSecAttrKeyTypeRC4: CFString = "25"
/// CAST.
nonisolated(unsafe) public let kSecAttrKeyTypeCAST: CFString = "56"
/// DSA.
nonisolated(unsafe) public let kSecAttrKeyTypeDSA: CFString = "43"
