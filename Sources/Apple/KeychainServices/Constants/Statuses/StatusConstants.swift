// Results of keychain calls. Source: Apple `SecBase.h`; those marked private: `SecBasePriv.h`.

/// The Toolbox's name of `errSecSuccess`.
public let noErr: OSStatus = 0
/// The call did what it was asked.
public let errSecSuccess: OSStatus = 0
/// This kind of item cannot be searched in this way.
public let errSecUnimplemented: OSStatus = -4
/// There is no space left on the disk.
public let errSecDiskFull: OSStatus = -34
/// The keychain's file could not be read or written.
public let errSecIO: OSStatus = -36
/// A key or a value of the call is not valid, or some do not go together.
public let errSecParam: OSStatus = -50
/// There is not enough memory.
public let errSecAllocate: OSStatus = -108
/// The person dismissed the dialog.
public let errSecUserCanceled: OSStatus = -128
/// The call does not fit the state that things are in.
public let errSecBadReq: OSStatus = -909
/// The app has no access group, or none that allows this; also for an app that the device does not have.
public let errSecMissingEntitlement: OSStatus = -34018
/// Private.
public let errSecUpgradePending: OSStatus = -34019
/// An App Clip may not do this.
public let errSecRestrictedAPI: OSStatus = -34020
/// There is no keychain to be had, or another process holds the device.
public let errSecNotAvailable: OSStatus = -25291
/// The keychain cannot be changed.
public let errSecReadOnly: OSStatus = -25292
/// The person could not be authenticated, or an item needs a passcode and the device has none.
public let errSecAuthFailed: OSStatus = -25293
/// An item with the same primary key is there.
public let errSecDuplicateItem: OSStatus = -25299
/// No item matches.
public let errSecItemNotFound: OSStatus = -25300
/// The class has no such attribute.
public let errSecNoSuchAttr: OSStatus = -25303
/// The reference leads to no item any more.
public let errSecInvalidItemRef: OSStatus = -25304
/// There is no such class, or the reference is to an item of another one.
public let errSecNoSuchClass: OSStatus = -25306
/// The device is locked, or a person would have to be asked and may not be.
public let errSecInteractionNotAllowed: OSStatus = -25308
/// Private.
public let errSecAuthNeeded: OSStatus = -25330
/// A policy forbids this.
public let errSecPolicyDenied: OSStatus = -26270
/// The item's bytes cannot be decrypted or read.
public let errSecDecode: OSStatus = -26275
/// Private.
public let errSecInternal: OSStatus = -26276
/// A service that the call needs is not there.
public let errSecServiceNotAvailable: OSStatus = -67585
/// A signature or a digest does not verify.
public let errSecVerifyFailed: OSStatus = -67808
