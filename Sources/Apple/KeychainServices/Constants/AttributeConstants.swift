// Names of item attributes. Source: Apple `SecItem.h`, `SecItemConstants.c`, and the Mac's additional constants.
//
// A constant alone does not make an attribute work: only the attributes in `AttributeTable` (KeychainFormats) are
// accepted and stored. A new attribute needs a row there first.

import Basics
public import Foundation

// MARK: All classes

/// The protection class: one of the values `kSecAttrAccessible…`.
nonisolated(unsafe) public let kSecAttrAccessible: CFString = "pdmn"
/// A `SecAccessControl`: the protection class and the authentication that the item requires.
nonisolated(unsafe) public let kSecAttrAccessControl: CFString = "accc"
/// The access group, which determines the apps that share the item; part of the primary key.
nonisolated(unsafe) public let kSecAttrAccessGroup: CFString = "agrp"
/// 1 if iCloud Keychain synchronizes the item; part of the primary key.
nonisolated(unsafe) public let kSecAttrSynchronizable: CFString = "sync"
/// The value of `kSecAttrSynchronizable` for a query of synchronized and local items. By default, a query finds only
/// local items.
nonisolated(unsafe) public let kSecAttrSynchronizableAny: CFString = "syna"
/// The creation date.
nonisolated(unsafe) public let kSecAttrCreationDate: CFString = "cdat"
/// The modification date, which decides between two items with the same primary key.
nonisolated(unsafe) public let kSecAttrModificationDate: CFString = "mdat"
/// The label, which users see.
nonisolated(unsafe) public let kSecAttrLabel: CFString = "labl"
/// An alias.
nonisolated(unsafe) public let kSecAttrAlias: CFString = "alis"
/// The token that stores the key. Such an item is never in a backup.
nonisolated(unsafe) public let kSecAttrTokenID: CFString = "tkid"
/// The value of `kSecAttrTokenID` for the Secure Enclave.
nonisolated(unsafe) public let kSecAttrTokenIDSecureEnclave: CFString = "com.apple.setoken"
/// The access group of items on a token. Every app may name it in a query, and no app may write to it.
nonisolated(unsafe) public let kSecAttrAccessGroupToken: CFString = "com.apple.token"
/// The iCloud Keychain view of the item; part of the primary key.
nonisolated(unsafe) public let kSecAttrSyncViewHint: CFString = "vwht"
/// The 16 bytes of the item's persistent reference, which a restore keeps.
nonisolated(unsafe) public let kSecAttrPersistentReference: CFString = "persistref"
/// Apple's former spelling of `kSecAttrPersistentReference`, with the same value.
nonisolated(unsafe) public let kSecAttrPersistantReference: CFString = "persistref"

// MARK: Passwords

/// A description of the kind of item for users, such as "Wi-Fi password".
nonisolated(unsafe) public let kSecAttrDescription: CFString = "desc"
/// A comment for users.
nonisolated(unsafe) public let kSecAttrComment: CFString = "icmt"
/// The four-character code of the app that created the item.
nonisolated(unsafe) public let kSecAttrCreator: CFString = "crtr"
/// The four-character code of the item's type.
nonisolated(unsafe) public let kSecAttrType: CFString = "type"
/// The text encoding script, from classic Mac OS.
nonisolated(unsafe) public let kSecAttrScriptCode: CFString = "scrp"
/// 1 if the item should not be shown to users.
nonisolated(unsafe) public let kSecAttrIsInvisible: CFString = "invi"
/// 1 if no password should be stored.
nonisolated(unsafe) public let kSecAttrIsNegative: CFString = "nega"
/// 1 if the item has a custom icon.
nonisolated(unsafe) public let kSecAttrHasCustomIcon: CFString = "cusi"
/// The account, part of a password's primary key.
nonisolated(unsafe) public let kSecAttrAccount: CFString = "acct"
/// The service, part of a generic password's primary key.
nonisolated(unsafe) public let kSecAttrService: CFString = "svce"
/// App-defined data, which is not a secret.
nonisolated(unsafe) public let kSecAttrGeneric: CFString = "gena"
/// The realm of an internet password, part of its primary key.
nonisolated(unsafe) public let kSecAttrSecurityDomain: CFString = "sdmn"
/// The host, part of an internet password's primary key.
nonisolated(unsafe) public let kSecAttrServer: CFString = "srvr"
/// The protocol as four characters, such as `htps`; part of the primary key.
nonisolated(unsafe) public let kSecAttrProtocol: CFString = "ptcl"
/// The authentication type, part of the primary key.
nonisolated(unsafe) public let kSecAttrAuthenticationType: CFString = "atyp"
/// The port, part of the primary key; 0 if there is none.
nonisolated(unsafe) public let kSecAttrPort: CFString = "port"
/// The path, part of the primary key.
nonisolated(unsafe) public let kSecAttrPath: CFString = "path"
/// The user's notes on a password, encrypted as a secret.
nonisolated(unsafe) public let kSecDataInetExtraNotes: CFString = "binn"
/// Earlier passwords, encrypted as a secret.
nonisolated(unsafe) public let kSecDataInetExtraHistory: CFString = "bini"
/// App-defined data, encrypted as a secret.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined0: CFString = "bin0"
/// App-defined data, a second value.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined1: CFString = "bin1"
/// App-defined data, a third value.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined2: CFString = "bin2"
/// App-defined data, a fourth value.
nonisolated(unsafe) public let kSecDataInetExtraClientDefined3: CFString = "bin3"

// MARK: Certificates

/// The subject's name without its outer tag, in Apple's normalized form.
nonisolated(unsafe) public let kSecAttrSubject: CFString = "subj"
/// The issuer's name without its outer tag, in Apple's normalized form; part of the primary key.
nonisolated(unsafe) public let kSecAttrIssuer: CFString = "issr"
/// The content of the serial number's INTEGER; part of the primary key.
nonisolated(unsafe) public let kSecAttrSerialNumber: CFString = "slnr"
/// The subject key identifier of the certificate.
nonisolated(unsafe) public let kSecAttrSubjectKeyID: CFString = "skid"
/// SHA-1 of the certificate's public key; equals the `kSecAttrApplicationLabel` of its private key.
nonisolated(unsafe) public let kSecAttrPublicKeyHash: CFString = "pkhh"
/// The X.509 version, 3; part of a certificate's primary key.
nonisolated(unsafe) public let kSecAttrCertificateType: CFString = "ctyp"
/// The encoding of a certificate, 3 for DER.
nonisolated(unsafe) public let kSecAttrCertificateEncoding: CFString = "cenc"

// MARK: Keys

/// The class of the key: `kSecAttrKeyClassPublic`, `kSecAttrKeyClassPrivate` or `kSecAttrKeyClassSymmetric`; part of the
/// primary key.
nonisolated(unsafe) public let kSecAttrKeyClass: CFString = "kcls"
/// SHA-1 of the public key, part of the primary key.
nonisolated(unsafe) public let kSecAttrApplicationLabel: CFString = "klbl"
/// An app-defined name of a key; part of the primary key.
nonisolated(unsafe) public let kSecAttrApplicationTag: CFString = "atag"
/// 1 if the key is stored permanently.
nonisolated(unsafe) public let kSecAttrIsPermanent: CFString = "perm"
/// 1 for a private key. Together with a certificate of the same public key, it is an identity.
nonisolated(unsafe) public let kSecAttrIsPrivate: CFString = "priv"
/// 1 if the key can be changed.
nonisolated(unsafe) public let kSecAttrIsModifiable: CFString = "modi"
/// The four-character code of the app that created the key; part of the primary key.
nonisolated(unsafe) public let kSecAttrKeyCreator: CFString = "crtr"
/// The algorithm of a key, such as `kSecAttrKeyTypeRSA`; part of the primary key.
nonisolated(unsafe) public let kSecAttrKeyType: CFString = "type"
/// The length of a key in bits, part of the primary key.
nonisolated(unsafe) public let kSecAttrKeySizeInBits: CFString = "bsiz"
/// The effective length in bits, part of the primary key.
nonisolated(unsafe) public let kSecAttrEffectiveKeySize: CFString = "esiz"
/// The date from which a key may be used, part of the primary key.
nonisolated(unsafe) public let kSecAttrStartDate: CFString = "sdat"
/// The date until which a key may be used, part of the primary key.
nonisolated(unsafe) public let kSecAttrEndDate: CFString = "edat"
/// 1 if the key can be exported only wrapped.
nonisolated(unsafe) public let kSecAttrIsSensitive: CFString = "sens"
/// 1 if the key has always been sensitive.
nonisolated(unsafe) public let kSecAttrWasAlwaysSensitive: CFString = "asen"
/// 1 if the key can be exported.
nonisolated(unsafe) public let kSecAttrIsExtractable: CFString = "extr"
/// 1 if the key has never been extractable.
nonisolated(unsafe) public let kSecAttrWasNeverExtractable: CFString = "next"
/// 1 if the key can encrypt.
nonisolated(unsafe) public let kSecAttrCanEncrypt: CFString = "encr"
/// 1 if the key can decrypt.
nonisolated(unsafe) public let kSecAttrCanDecrypt: CFString = "decr"
/// 1 if other keys can be derived from it.
nonisolated(unsafe) public let kSecAttrCanDerive: CFString = "drve"
/// 1 if the key can sign.
nonisolated(unsafe) public let kSecAttrCanSign: CFString = "sign"
/// 1 if the key can verify signatures.
nonisolated(unsafe) public let kSecAttrCanVerify: CFString = "vrfy"
/// 1 if the key can sign with message recovery.
nonisolated(unsafe) public let kSecAttrCanSignRecover: CFString = "snrc"
/// 1 if the key can verify signatures with message recovery.
nonisolated(unsafe) public let kSecAttrCanVerifyRecover: CFString = "vyrc"
/// 1 if the key can wrap other keys.
nonisolated(unsafe) public let kSecAttrCanWrap: CFString = "wrap"
/// 1 if the key can unwrap other keys.
nonisolated(unsafe) public let kSecAttrCanUnwrap: CFString = "unwp"
/// The attributes of the private key, in the parameters for a new key pair.
nonisolated(unsafe) public let kSecPrivateKeyAttrs: CFString = "private"
/// The attributes of the public key, in the parameters for a new key pair.
nonisolated(unsafe) public let kSecPublicKeyAttrs: CFString = "public"

// MARK: Values of a key's class

/// A public key.
nonisolated(unsafe) public let kSecAttrKeyClassPublic: CFString = "0"
/// A private key.
nonisolated(unsafe) public let kSecAttrKeyClassPrivate: CFString = "1"
/// A symmetric key.
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

// MARK: Values of a key's type for keys that can be stored and found, but not used. Apple has them only on the Mac.

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
