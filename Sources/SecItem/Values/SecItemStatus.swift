/// The results of Apple's keychain calls (`OSStatus`): those that this keychain ends calls with, and those that apps
/// compare with although nothing here gives them.
///
/// Source: Apple `SecBase.h`, `SecBasePriv.h`.
public enum SecItemStatus: Int32, Sendable, CaseIterable {
  case success = 0
  case unimplemented = -4
  case diskFull = -34
  case ioError = -36
  case parameter = -50
  case allocate = -108
  case userCanceled = -128
  case badRequest = -909
  case missingEntitlement = -34018
  case upgradePending = -34019
  case restrictedAPI = -34020
  case notAvailable = -25291
  case readOnly = -25292
  case authFailed = -25293
  case duplicateItem = -25299
  case itemNotFound = -25300
  case noSuchAttribute = -25303
  case invalidItemReference = -25304
  case noSuchClass = -25306
  case interactionNotAllowed = -25308
  case authNeeded = -25330
  case policyDenied = -26270
  case decode = -26275
  case internalError = -26276
  case serviceNotAvailable = -67585
  case verifyFailed = -67808

  /// The name of Apple's constant.
  public var constantName: String {
    switch self {
    case .success: "errSecSuccess"
    case .unimplemented: "errSecUnimplemented"
    case .diskFull: "errSecDiskFull"
    case .ioError: "errSecIO"
    case .parameter: "errSecParam"
    case .allocate: "errSecAllocate"
    case .userCanceled: "errSecUserCanceled"
    case .badRequest: "errSecBadReq"
    case .missingEntitlement: "errSecMissingEntitlement"
    case .upgradePending: "errSecUpgradePending"
    case .restrictedAPI: "errSecRestrictedAPI"
    case .notAvailable: "errSecNotAvailable"
    case .readOnly: "errSecReadOnly"
    case .authFailed: "errSecAuthFailed"
    case .duplicateItem: "errSecDuplicateItem"
    case .itemNotFound: "errSecItemNotFound"
    case .noSuchAttribute: "errSecNoSuchAttr"
    case .invalidItemReference: "errSecInvalidItemRef"
    case .noSuchClass: "errSecNoSuchClass"
    case .interactionNotAllowed: "errSecInteractionNotAllowed"
    case .authNeeded: "errSecAuthNeeded"
    case .policyDenied: "errSecPolicyDenied"
    case .decode: "errSecDecode"
    case .internalError: "errSecInternal"
    case .serviceNotAvailable: "errSecServiceNotAvailable"
    case .verifyFailed: "errSecVerifyFailed"
    }
  }

  /// What `SecCopyErrorMessageString` says of it: the fact that the constant stands for, in this project's words.
  public var sentence: String {
    switch self {
    case .success: "The call did what it was asked."
    case .unimplemented: "This kind of item cannot be searched in this way."
    case .diskFull: "There is no space left on the disk."
    case .ioError: "The keychain's file could not be read or written."
    case .parameter: "A key or a value of the call is not valid, or some of them do not go together."
    case .allocate: "There is not enough memory."
    case .userCanceled: "The person dismissed the dialog."
    case .badRequest: "The call does not fit the state that things are in."
    case .missingEntitlement: "The app has no access group, or none that allows this."
    case .upgradePending: "The keychain is waiting to be converted to its newest form."
    case .restrictedAPI: "An App Clip may not do this."
    case .notAvailable: "The keychain cannot be used."
    case .readOnly: "The keychain cannot be changed."
    case .authFailed: "The person could not be authenticated, or the device has no passcode and the item needs one."
    case .duplicateItem: "There is an item with the same primary key already."
    case .itemNotFound: "No item matches."
    case .noSuchAttribute: "This class of items has no such attribute."
    case .invalidItemReference: "The reference leads to no item any more."
    case .noSuchClass: "There is no such class of items, or the reference is to an item of another one."
    case .interactionNotAllowed: "The device is locked, or a person would have to be asked and may not be."
    case .authNeeded: "The person has to be authenticated first."
    case .policyDenied: "A policy forbids this."
    case .decode: "The item's bytes cannot be decrypted or read."
    case .internalError: "Something went wrong inside the keychain."
    case .serviceNotAvailable: "A service that the call needs is not there."
    case .verifyFailed: "A signature or a digest does not verify."
    }
  }
}
