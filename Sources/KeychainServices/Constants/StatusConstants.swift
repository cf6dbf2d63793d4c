// Results of keychain calls. Source: Apple `SecBase.h`; those marked private: `SecBasePriv.h`.

public let noErr: OSStatus = 0
public let errSecSuccess: OSStatus = 0
public let errSecUnimplemented: OSStatus = -4
public let errSecDiskFull: OSStatus = -34
public let errSecIO: OSStatus = -36
public let errSecParam: OSStatus = -50
public let errSecAllocate: OSStatus = -108
public let errSecUserCanceled: OSStatus = -128
public let errSecBadReq: OSStatus = -909
public let errSecMissingEntitlement: OSStatus = -34018
/// Private.
public let errSecUpgradePending: OSStatus = -34019
public let errSecRestrictedAPI: OSStatus = -34020
public let errSecNotAvailable: OSStatus = -25291
public let errSecReadOnly: OSStatus = -25292
public let errSecAuthFailed: OSStatus = -25293
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300
public let errSecNoSuchAttr: OSStatus = -25303
public let errSecInvalidItemRef: OSStatus = -25304
public let errSecNoSuchClass: OSStatus = -25306
public let errSecInteractionNotAllowed: OSStatus = -25308
/// Private.
public let errSecAuthNeeded: OSStatus = -25330
public let errSecPolicyDenied: OSStatus = -26270
public let errSecDecode: OSStatus = -26275
/// Private.
public let errSecInternal: OSStatus = -26276
public let errSecServiceNotAvailable: OSStatus = -67585
public let errSecVerifyFailed: OSStatus = -67808
