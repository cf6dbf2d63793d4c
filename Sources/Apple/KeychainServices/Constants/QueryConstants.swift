// Keys of a keychain query that are not attributes, and their values. Source: Apple `SecItem.h` and
// `SecItemConstants.c`.

public import Foundation

// MARK: Classes

/// The class of the items. A call without it ends with `errSecParam`, unless a reference implies the class.
nonisolated(unsafe) public let kSecClass: CFString = "class"
/// Passwords for services, and any other secrets of apps.
nonisolated(unsafe) public let kSecClassGenericPassword: CFString = "genp"
/// Passwords for servers.
nonisolated(unsafe) public let kSecClassInternetPassword: CFString = "inet"
/// X.509 certificates.
nonisolated(unsafe) public let kSecClassCertificate: CFString = "cert"
/// Cryptographic keys.
nonisolated(unsafe) public let kSecClassKey: CFString = "keys"
/// A certificate and its private key, which are stored separately.
nonisolated(unsafe) public let kSecClassIdentity: CFString = "idnt"

// MARK: Match keys

/// A `SecPolicy` for certificates. A search does not evaluate it: a query with a value ends with `errSecParam`.
nonisolated(unsafe) public let kSecMatchPolicy: CFString = "m_Policy"
/// A list to search instead of the keychain. Accepted, but does not narrow the search.
nonisolated(unsafe) public let kSecMatchItemList: CFString = "m_ItemList"
/// The keychains of a Mac to search. Accepted, but does not narrow the search.
nonisolated(unsafe) public let kSecMatchSearchList: CFString = "m_SearchList"
/// The DER names of issuers. The certificate's chain must contain at least one of them.
nonisolated(unsafe) public let kSecMatchIssuers: CFString = "m_Issuers"
/// An e-mail address that certificates and identities must contain.
nonisolated(unsafe) public let kSecMatchEmailAddressIfPresent: CFString = "m_EmailAddressIfPresent"
/// A part of the certificate's subject. Accepted, but does not narrow the search.
nonisolated(unsafe) public let kSecMatchSubjectContains: CFString = "m_SubjectContains"
/// Whether a match is case-insensitive. Accepted, but does not narrow the search.
nonisolated(unsafe) public let kSecMatchCaseInsensitive: CFString = "m_CaseInsensitive"
/// True to find only trusted certificates. A virtual device trusts no authority, so the search finds no certificate.
nonisolated(unsafe) public let kSecMatchTrustedOnly: CFString = "m_TrustedOnly"
/// A date at which the certificate must be valid, or `kCFNull` for now.
nonisolated(unsafe) public let kSecMatchValidOnDate: CFString = "m_ValidOnDate"
/// The largest number of results: a number, `kSecMatchLimitOne` (the default) or `kSecMatchLimitAll`.
nonisolated(unsafe) public let kSecMatchLimit: CFString = "m_Limit"
/// A single item, which is the default.
nonisolated(unsafe) public let kSecMatchLimitOne: CFString = "m_LimitOne"
/// All items. The result is an array even if there is only one.
nonisolated(unsafe) public let kSecMatchLimitAll: CFString = "m_LimitAll"

// MARK: Return keys

/// True to return the secret as data. The call ends with `errSecInteractionNotAllowed` if the key of the item's
/// protection class is not available. On a locked device, the key of "when unlocked" is not available.
nonisolated(unsafe) public let kSecReturnData: CFString = "r_Data"
/// True to return the attributes as a dictionary.
nonisolated(unsafe) public let kSecReturnAttributes: CFString = "r_Attributes"
/// True to return a `SecCertificate`, `SecKey` or `SecIdentity`. Passwords have no references.
nonisolated(unsafe) public let kSecReturnRef: CFString = "r_Ref"
/// True to return the item's persistent reference as data. A restore keeps it.
nonisolated(unsafe) public let kSecReturnPersistentRef: CFString = "r_PersistentRef"

// MARK: Value keys

/// The secret as data: a password, a DER certificate, the bytes of a key.
nonisolated(unsafe) public let kSecValueData: CFString = "v_Data"
/// A certificate, key or identity to add or to search for.
nonisolated(unsafe) public let kSecValueRef: CFString = "v_Ref"
/// The persistent reference of an item to search for.
nonisolated(unsafe) public let kSecValuePersistentRef: CFString = "v_PersistentRef"

// MARK: Use keys

/// Apple's list of items to use. A call with it ends with `errSecParam`.
nonisolated(unsafe) public let kSecUseItemList: CFString = "u_ItemList"
/// The text of the authentication dialog.
nonisolated(unsafe) public let kSecUseOperationPrompt: CFString = "u_OpPrompt"
/// Apple's former key to forbid dialogs. With true, the call fails if authentication is required.
nonisolated(unsafe) public let kSecUseNoAuthenticationUI: CFString = "u_NoAuthUI"
/// The permission for authentication dialogs: one of the constants that start with `kSecUseAuthenticationUI`.
nonisolated(unsafe) public let kSecUseAuthenticationUI: CFString = "u_AuthUI"
/// Dialogs are allowed, which is the default.
nonisolated(unsafe) public let kSecUseAuthenticationUIAllow: CFString = "u_AuthUIA"
/// The call ends with `errSecInteractionNotAllowed` if authentication is required.
nonisolated(unsafe) public let kSecUseAuthenticationUIFail: CFString = "u_AuthUIF"
/// Items that require authentication are skipped.
nonisolated(unsafe) public let kSecUseAuthenticationUISkip: CFString = "u_AuthUIS"
/// An `LAContext`. Authentication that it has already obtained is not requested again.
nonisolated(unsafe) public let kSecUseAuthenticationContext: CFString = "u_AuthCtx"
/// Selects a Mac's data protection keychain, which is the only one here. It has no effect.
nonisolated(unsafe) public let kSecUseDataProtectionKeychain: CFString = "nleg"
