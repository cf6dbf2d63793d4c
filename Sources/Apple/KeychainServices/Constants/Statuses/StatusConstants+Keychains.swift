// Results of keychains, of import and export, and of policies, which no call of this keychain gives: apps compare with them, and tell a person what they mean.
// Source: Apple `SecBase.h`.

/// The file is open for writing already.
public let errSecOpWr: OSStatus = -49
/// Writing is not permitted.
public let errSecWrPerm: OSStatus = -61
/// A component of the system failed.
public let errSecInternalComponent: OSStatus = -2070
/// Core Foundation failed for a reason that it does not name.
public let errSecCoreFoundationUnknown: OSStatus = -4960
/// The list of access rights has more than the standard form allows.
public let errSecACLNotSimple: OSStatus = -25240
/// The policy was not found.
public let errSecPolicyNotFound: OSStatus = -25241
/// The trust setting is not valid.
public let errSecInvalidTrustSetting: OSStatus = -25242
/// The item has no access control.
public let errSecNoAccessForItem: OSStatus = -25243
/// The item's owner cannot be changed in this way.
public let errSecInvalidOwnerEdit: OSStatus = -25244
/// There is no result of an evaluation of trust.
public let errSecTrustNotAvailable: OSStatus = -25245
/// This format cannot be imported or exported.
public let errSecUnsupportedFormat: OSStatus = -25256
/// The format of the import is unknown.
public let errSecUnknownFormat: OSStatus = -25257
/// The key leaves only wrapped.
public let errSecKeyIsSensitive: OSStatus = -25258
/// There is more than one private key to import.
public let errSecMultiplePrivKeys: OSStatus = -25259
/// Import and export need a passphrase.
public let errSecPassphraseRequired: OSStatus = -25260
/// The reference to the password is not valid.
public let errSecInvalidPasswordRef: OSStatus = -25261
/// The record of trust settings is damaged.
public let errSecInvalidTrustSettings: OSStatus = -25262
/// There are no trust settings.
public let errSecNoTrustSettings: OSStatus = -25263
/// The PKCS#12 file is not what its code was made of, or the password is wrong.
public let errSecPkcs12VerifyFailure: OSStatus = -25264
/// There is no such keychain.
public let errSecNoSuchKeychain: OSStatus = -25294
/// The file is not a keychain.
public let errSecInvalidKeychain: OSStatus = -25295
/// There is a keychain of this name already.
public let errSecDuplicateKeychain: OSStatus = -25296
/// This callback is registered already.
public let errSecDuplicateCallback: OSStatus = -25297
/// The callback is not valid.
public let errSecInvalidCallback: OSStatus = -25298
/// The buffer is too small for what it shall take.
public let errSecBufferTooSmall: OSStatus = -25301
/// The data is larger than can be handled, or has a form that cannot be shown.
public let errSecDataTooLarge: OSStatus = -25302
/// The search cannot be used.
public let errSecInvalidSearchRef: OSStatus = -25305
/// There is no default keychain.
public let errSecNoDefaultKeychain: OSStatus = -25307
/// The attribute cannot be changed.
public let errSecReadOnlyAttr: OSStatus = -25309
/// The keychain was made by another version of the system, which this one cannot open.
public let errSecWrongSecVersion: OSStatus = -25310
/// The key is too small or too large.
public let errSecKeySizeNotAllowed: OSStatus = -25311
/// The module that stores data could not be loaded.
public let errSecNoStorageModule: OSStatus = -25312
/// The module for certificates could not be loaded.
public let errSecNoCertificateModule: OSStatus = -25313
/// The module for policies could not be loaded.
public let errSecNoPolicyModule: OSStatus = -25314
/// A person has to be asked, and may not be.
public let errSecInteractionRequired: OSStatus = -25315
/// The item's contents cannot be had.
public let errSecDataNotAvailable: OSStatus = -25316
/// The item's contents cannot be changed.
public let errSecDataNotModifiable: OSStatus = -25317
/// A certificate of the chain is missing.
public let errSecCreateChainFailed: OSStatus = -25318
/// The domain of the preferences is not valid.
public let errSecInvalidPrefsDomain: OSStatus = -25319
/// The screen is dark and nobody can be asked.
public let errSecInDarkWake: OSStatus = -25320
/// The certificate was not signed by the one that is said to have issued it.
public let errSecNotSigner: OSStatus = -26267
