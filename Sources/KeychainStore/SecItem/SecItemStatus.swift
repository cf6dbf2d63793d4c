/// The results of Apple's keychain calls (`OSStatus`) that this keychain can end with.
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

  /// What `SecCopyErrorMessageString` says of it.
  public var sentence: String {
    switch self {
    case .success: "No error."
    case .unimplemented: "Function or operation not implemented."
    case .diskFull: "The disk is full."
    case .ioError: "I/O error."
    case .parameter: "One or more parameters passed to a function were not valid."
    case .allocate: "Failed to allocate memory."
    case .userCanceled: "User canceled the operation."
    case .badRequest: "Bad parameter or invalid state for operation."
    case .missingEntitlement: "A required entitlement isn't present."
    case .upgradePending: "The keychain's upgrade is not finished."
    case .restrictedAPI: "Client is restricted and is not permitted to perform this operation."
    case .notAvailable: "No keychain is available. You may need to restart your computer."
    case .readOnly: "This keychain cannot be modified."
    case .authFailed: "The user name or passphrase you entered is not correct."
    case .duplicateItem: "The specified item already exists in the keychain."
    case .itemNotFound: "The specified item could not be found in the keychain."
    case .noSuchAttribute: "The specified attribute does not exist."
    case .invalidItemReference: "The specified item is no longer valid. It may have been deleted from the keychain."
    case .noSuchClass: "The specified item does not appear to be a valid keychain item."
    case .interactionNotAllowed: "User interaction is not allowed."
    case .authNeeded: "Authentication is needed to complete this operation."
    case .policyDenied: "The policy doesn't permit this operation."
    case .decode: "Unable to decode the provided data."
    case .internalError: "An internal error occurred."
    case .serviceNotAvailable: "The required service is not available."
    case .verifyFailed: "A cryptographic verification failure has occurred."
    }
  }
}
