// Keys of a keychain query that are no attributes, and their values.
// Source: Apple `SecItem.h` and `SecItemConstants.c`.

public import Foundation

// MARK: Classes

/// The class of item that is meant; without it a call ends with `errSecParam`, unless a reference says it.
nonisolated(unsafe) public let kSecClass: CFString = "class"
/// Passwords for services, and whatever an app keeps.
nonisolated(unsafe) public let kSecClassGenericPassword: CFString = "genp"
/// Passwords for servers.
nonisolated(unsafe) public let kSecClassInternetPassword: CFString = "inet"
/// X.509 certificates.
nonisolated(unsafe) public let kSecClassCertificate: CFString = "cert"
/// Cryptographic keys.
nonisolated(unsafe) public let kSecClassKey: CFString = "keys"
/// A certificate joined with its private key; stored as these two.
nonisolated(unsafe) public let kSecClassIdentity: CFString = "idnt"

// MARK: What to match

/// A `SecPolicy` for certificates. A search does not evaluate it: with a value the call ends with `errSecParam`.
nonisolated(unsafe) public let kSecMatchPolicy: CFString = "m_Policy"
/// A list to look in instead of the keychain. Counts as a match key and does nothing.
nonisolated(unsafe) public let kSecMatchItemList: CFString = "m_ItemList"
/// The keychains of a Mac to look in. Counts as a match key and does nothing.
nonisolated(unsafe) public let kSecMatchSearchList: CFString = "m_SearchList"
/// DER names of issuers, one of which stands in the certificate's chain.
nonisolated(unsafe) public let kSecMatchIssuers: CFString = "m_Issuers"
/// An e-mail address: certificates and identities that do not have it are not found.
nonisolated(unsafe) public let kSecMatchEmailAddressIfPresent: CFString = "m_EmailAddressIfPresent"
/// A part of the certificate's subject. Counts as a match key and does nothing.
nonisolated(unsafe) public let kSecMatchSubjectContains: CFString = "m_SubjectContains"
/// Whether letters' case counts in a match. Counts as a match key and does nothing.
nonisolated(unsafe) public let kSecMatchCaseInsensitive: CFString = "m_CaseInsensitive"
/// True finds certificates that an authority vouches for. A virtual device trusts no authority, so it finds none.
nonisolated(unsafe) public let kSecMatchTrustedOnly: CFString = "m_TrustedOnly"
/// A date at which the certificate is valid; `kCFNull` stands for now.
nonisolated(unsafe) public let kSecMatchValidOnDate: CFString = "m_ValidOnDate"
/// How many items are found: a number, or one of the two values below. Without it one.
nonisolated(unsafe) public let kSecMatchLimit: CFString = "m_Limit"
/// One item, the value that holds where none is given.
nonisolated(unsafe) public let kSecMatchLimitOne: CFString = "m_LimitOne"
/// All items, given in an array even where there is one.
nonisolated(unsafe) public let kSecMatchLimitAll: CFString = "m_LimitAll"

// MARK: What to return

/// True returns the secret as data; a device that is locked ends the call with `errSecInteractionNotAllowed`.
nonisolated(unsafe) public let kSecReturnData: CFString = "r_Data"
/// True returns the attributes as a dictionary.
nonisolated(unsafe) public let kSecReturnAttributes: CFString = "r_Attributes"
/// True returns a `SecCertificate`, `SecKey` or `SecIdentity`; passwords have no references.
nonisolated(unsafe) public let kSecReturnRef: CFString = "r_Ref"
/// True returns the lasting handle of the item as data, which survives a restore.
nonisolated(unsafe) public let kSecReturnPersistentRef: CFString = "r_PersistentRef"

// MARK: What to go by

/// The secret as data: a password, a DER certificate, the bytes of a key.
nonisolated(unsafe) public let kSecValueData: CFString = "v_Data"
/// A certificate, key or identity to add, or to search for.
nonisolated(unsafe) public let kSecValueRef: CFString = "v_Ref"
/// The lasting handle of an item, to search for it.
nonisolated(unsafe) public let kSecValuePersistentRef: CFString = "v_PersistentRef"

// MARK: How to search

/// Apple's list of items to use. A call with it ends with `errSecParam`.
nonisolated(unsafe) public let kSecUseItemList: CFString = "u_ItemList"
/// The sentence that the person is shown where the item asks for one.
nonisolated(unsafe) public let kSecUseOperationPrompt: CFString = "u_OpPrompt"
/// Apple's former way to forbid the dialog: with true the call fails instead of asking.
nonisolated(unsafe) public let kSecUseNoAuthenticationUI: CFString = "u_NoAuthUI"
/// Whether the person may be asked: one of the three values below.
nonisolated(unsafe) public let kSecUseAuthenticationUI: CFString = "u_AuthUI"
/// The person may be asked, the value that holds where none is given.
nonisolated(unsafe) public let kSecUseAuthenticationUIAllow: CFString = "u_AuthUIA"
/// The call ends with `errSecInteractionNotAllowed` instead of asking.
nonisolated(unsafe) public let kSecUseAuthenticationUIFail: CFString = "u_AuthUIF"
/// Items that would ask are passed over.
nonisolated(unsafe) public let kSecUseAuthenticationUISkip: CFString = "u_AuthUIS"
/// An `LAContext`: what its person has answered is not asked again.
nonisolated(unsafe) public let kSecUseAuthenticationContext: CFString = "u_AuthCtx"
/// Chooses a Mac's data protection keychain, the only one here; taken and of no effect.
nonisolated(unsafe) public let kSecUseDataProtectionKeychain: CFString = "nleg"
