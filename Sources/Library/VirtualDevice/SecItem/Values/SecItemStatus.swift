package import Basics
import KeychainFormats
import Keychains

/// The results of Apple's keychain calls (`OSStatus`): those that this keychain returns, and others that apps compare
/// with.
///
/// Source: Apple `SecBase.h`, `SecBasePriv.h`.
package enum SecItemStatus: Int32, Sendable, CaseIterable {
  /// `errSecSuccess`: the call succeeded.
  case success = 0
  /// `errSecUnimplemented`: this kind of item cannot be searched in this way.
  case unimplemented = -4
  /// `errSecDiskFull`: there is no space left; nothing was changed.
  case diskFull = -34
  /// `errSecIO`: the keychain's file cannot be read or written.
  case ioError = -36
  /// `errSecParam`: a key or value of the call is not valid, or a combination is not allowed.
  case parameter = -50
  /// `errSecAllocate`: there is not enough memory.
  case allocate = -108
  /// `errSecUserCanceled`: the user dismissed the dialog.
  case userCanceled = -128
  /// `errSecBadReq`: the call is not valid in the current state.
  case badRequest = -909
  /// `errSecMissingEntitlement`: the app has no access group, or no group that allows the operation.
  case missingEntitlement = -34018
  /// `errSecUpgradePending`: the keychain is waiting to be converted. Virtual devices never return it.
  case upgradePending = -34019
  /// `errSecRestrictedAPI`: an App Clip may not do this.
  case restrictedAPI = -34020
  /// `errSecNotAvailable`: the keychain cannot be used.
  case notAvailable = -25291
  /// `errSecReadOnly`: the keychain cannot be changed.
  case readOnly = -25292
  /// `errSecAuthFailed`: the user could not be authenticated, or an item requires a passcode and the device has none.
  case authFailed = -25293
  /// `errSecDuplicateItem`: an item with the same primary key exists.
  case duplicateItem = -25299
  /// `errSecItemNotFound`: no item matches.
  case itemNotFound = -25300
  /// `errSecNoSuchAttr`: the class has no such attribute.
  case noSuchAttribute = -25303
  /// `errSecInvalidItemRef`: the reference no longer refers to an item.
  case invalidItemReference = -25304
  /// `errSecNoSuchClass`: there is no such class, or the reference is to an item of another class.
  case noSuchClass = -25306
  /// `errSecInteractionNotAllowed`: the device is locked, or the user would have to be asked but the call forbids it.
  case interactionNotAllowed = -25308
  /// `errSecAuthNeeded`: the user has to be authenticated first.
  case authNeeded = -25330
  /// `errSecPolicyDenied`: a policy forbids this.
  case policyDenied = -26270
  /// `errSecDecode`: the item's bytes cannot be decrypted or read.
  case decode = -26275
  /// `errSecInternal`: something went wrong inside the keychain.
  case internalError = -26276
  /// `errSecServiceNotAvailable`: a service that the call needs is missing.
  case serviceNotAvailable = -67585
  /// `errSecVerifyFailed`: a signature or a digest does not verify.
  case verifyFailed = -67808
}

extension SecItemStatus {
  /// The name of Apple's constant.
  package var constantName: String { details.constantName }

  /// A description of the status, like that of `SecCopyErrorMessageString` but in this project's words.
  package var sentence: String { details.sentence }

  var category: ErrorCategory { details.category }
  var advice: String { details.advice }

  private struct Details {
    let constantName: String
    let category: ErrorCategory
    let sentence: String
    let advice: String

    init(_ constantName: String, _ category: ErrorCategory, _ sentence: String, advice: String) {
      self.constantName = constantName
      self.category = category
      self.sentence = sentence
      self.advice = advice
    }
  }

  private static let adviceForQuery = "compare the keys and their values with Apple's reference for the call"
  private static let adviceForDirectory = "check that the device's folder is complete"
  private static let adviceForUser = "let the user authenticate"
  private static let adviceForLock = "unlock the device, or let the call ask the user"
  private static let adviceForSearch = "search with fewer attributes"
  private static let adviceForDamage = "restore the item from a backup"

  /// The names and texts of each status.
  private var details: Details {
    switch self {
    case .success:
      Details(
        "errSecSuccess", .failed, "The call did what it was asked.",
        advice: Self.adviceForDirectory)
    case .unimplemented:
      Details(
        "errSecUnimplemented", .failed, "This kind of item cannot be searched in this way.",
        advice: Self.adviceForQuery)
    case .diskFull:
      Details(
        "errSecDiskFull", .failed, "There is no space left on the disk.",
        advice: "free some space; nothing was changed")
    case .ioError:
      Details(
        "errSecIO", .failed, "The keychain's file could not be read or written.",
        advice: Self.adviceForDirectory)
    case .parameter:
      Details(
        "errSecParam", .failed, "A key or a value of the call is not valid, or some of them do not go together.",
        advice: Self.adviceForQuery)
    case .allocate:
      Details(
        "errSecAllocate", .failed, "There is not enough memory.",
        advice: Self.adviceForDirectory)
    case .userCanceled:
      Details(
        "errSecUserCanceled", .refused, "The user dismissed the dialog.",
        advice: Self.adviceForUser)
    case .badRequest:
      Details(
        "errSecBadReq", .failed, "The call is not valid in the current state.",
        advice: Self.adviceForQuery)
    case .missingEntitlement:
      Details(
        "errSecMissingEntitlement", .refused, "The app has no access group, or none that allows this.",
        advice: "use one of the app's access groups")
    case .upgradePending:
      Details(
        "errSecUpgradePending", .locked, "The keychain is waiting to be converted to its newest format.",
        advice: Self.adviceForLock)
    case .restrictedAPI:
      Details(
        "errSecRestrictedAPI", .refused, "An App Clip may not do this.",
        advice: "make the call from an app that is not an App Clip")
    case .notAvailable:
      Details(
        "errSecNotAvailable", .failed, "The keychain cannot be used.",
        advice: Self.adviceForDirectory)
    case .readOnly:
      Details(
        "errSecReadOnly", .refused, "The keychain cannot be changed.",
        advice: Self.adviceForDirectory)
    case .authFailed:
      Details(
        "errSecAuthFailed", .refused,
        "The user could not be authenticated, or the device has no passcode and the item needs one.",
        advice: "set a passcode, or authenticate")
    case .duplicateItem:
      Details(
        "errSecDuplicateItem", .failed, "An item with the same primary key already exists.",
        advice: "update the existing item, or delete it first")
    case .itemNotFound:
      Details(
        "errSecItemNotFound", .notFound, "No item matches.",
        advice: Self.adviceForSearch)
    case .noSuchAttribute:
      Details(
        "errSecNoSuchAttr", .failed, "This class of items has no such attribute.",
        advice: Self.adviceForQuery)
    case .invalidItemReference:
      Details(
        "errSecInvalidItemRef", .failed, "The reference no longer refers to an item.",
        advice: Self.adviceForSearch)
    case .noSuchClass:
      Details(
        "errSecNoSuchClass", .failed, "The item class does not exist, or the reference is to an item of another class.",
        advice: Self.adviceForQuery)
    case .interactionNotAllowed:
      Details(
        "errSecInteractionNotAllowed", .locked,
        "The device is locked, or the call forbids a necessary prompt.",
        advice: Self.adviceForLock)
    case .authNeeded:
      Details(
        "errSecAuthNeeded", .refused, "The user has to be authenticated first.",
        advice: Self.adviceForUser)
    case .policyDenied:
      Details(
        "errSecPolicyDenied", .refused, "A policy forbids this.",
        advice: Self.adviceForUser)
    case .decode:
      Details(
        "errSecDecode", .damaged, "The item's bytes cannot be decrypted or read.",
        advice: Self.adviceForDamage)
    case .internalError:
      Details(
        "errSecInternal", .failed, "Something went wrong inside the keychain.",
        advice: Self.adviceForDirectory)
    case .serviceNotAvailable:
      Details(
        "errSecServiceNotAvailable", .failed, "A service that the call needs is missing.",
        advice: Self.adviceForDirectory)
    case .verifyFailed:
      Details(
        "errSecVerifyFailed", .damaged, "A signature or a digest does not verify.",
        advice: Self.adviceForDamage)
    }
  }
}

extension KeyhaulError {
  /// The status that Apple's keychain services return for the error. Source: Apple `SecBase.h`, `SecBasePriv.h`.
  package var status: SecItemStatus {
    switch code {
    case .duplicateItem: .duplicateItem
    case .itemNotFound: .itemNotFound
    case .interactionNotAllowed: .interactionNotAllowed
    case .authFailed: .authFailed
    case .decode: .decode
    case .parameter: .parameter
    case .noSuchAttribute: .noSuchAttribute
    case .storeIO, .deviceIO: .ioError
    case .diskFull: .diskFull
    case .cancelled: .userCanceled
    default: .notAvailable
    }
  }
}
