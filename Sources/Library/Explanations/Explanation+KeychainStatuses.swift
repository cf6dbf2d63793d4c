import KeyhaulKit

extension Explanation {
  /// The keychain statuses (`OSStatus`) that developers may encounter, in descending order of their numbers.
  package static let keychainStatuses =
    (SecItemStatus.allCases.map(\.explanation) + fileStatuses).sorted { ($0.number ?? 0) > ($1.number ?? 0) }

  private static let header = "Apple, SecBase.h"
  private static let privateHeader = "Apple securityd, SecBasePriv.h"

  private static func makePage(
    _ name: String, _ number: Int32, _ headline: String, rule: String, effect: String, action: String,
    source: String = header
  ) -> Explanation {
    Explanation(
      id: name, number: number, headline: headline, rule: rule, effect: effect, action: action, source: source)
  }

  /// - Parameters:
  ///   - isPrivate: Whether the status is in Apple's private header.
  ///   - source: A source in addition to the header.
  fileprivate static func makePage(
    _ status: SecItemStatus, _ headline: String, rule: String, effect: String, action: String,
    isPrivate: Bool = false, see source: String? = nil
  ) -> Explanation {
    makePage(
      status.constantName, status.rawValue, headline,
      rule: rule,
      effect: effect,
      action: action,
      source: (isPrivate ? privateHeader : header) + (source.map { "; \($0)" } ?? ""))
  }

  // MARK: Files, imports, code signing

  private static let fileStatuses = [
    makePage(
      "errSecInteractionRequired", -25315, "the user would have to be asked",
      rule: "The call needs the user's answer, and cannot show a dialog.",
      effect: "Nothing was read or changed.",
      action: "Make the call where a dialog can be shown, or use an item that needs no user interaction."),
    makePage(
      "errSecInDarkWake", -25320, "the Mac runs with its screen off, so no dialog can be shown",
      rule: "The call would have to ask the user while the Mac is awake only for background work.",
      effect: "Nothing was read or changed.",
      action: "Make the call again when the Mac is in use."),
    makePage(
      "errSecNoSuchKeychain", -25294, "there is no such keychain file",
      rule: "The keychain that the call names does not exist. Only macOS has keychain files.",
      effect: "Nothing was read or changed.",
      action: "List the keychains with \"security list-keychains\"."),
    makePage(
      "errSecInvalidKeychain", -25295, "the file is not a keychain, or is damaged",
      rule: "The file that the call names cannot be read as a keychain file of macOS.",
      effect: "Nothing was read or changed.",
      action: "Use another copy of the file."),
    makePage(
      "errSecDuplicateKeychain", -25296, "a keychain file of this name exists",
      rule: "A new keychain cannot have the name of an existing one.",
      effect: "No keychain was created.",
      action: "Open the existing keychain, or choose another name."),
    makePage(
      "errSecNoDefaultKeychain", -25307, "the user has no default keychain",
      rule:
        "A call that names no keychain uses the default one. A process without a login, such as a service or a job of a "
        + "build server, may have none.",
      effect: "Nothing was read or changed.",
      action: "Set one with \"security default-keychain -s FILE\", or run the process as a "
        + "user."),
    makePage(
      "errSecNoAccessForItem", -25243, "the item has no access control list",
      rule:
        "Items in keychain files of macOS list the programs that may use them. The call asked an item without such a "
        + "list.",
      effect: "The list was not read or changed.",
      action: "Ask only items of a keychain file for their access."),
    makePage(
      "errSecReadOnlyAttr", -25309, "the attribute cannot be changed",
      rule: "The keychain sets some attributes itself, such as the dates.",
      effect: "Nothing was changed.",
      action: "Leave the attribute out of the changes."),
    makePage(
      "errSecBufferTooSmall", -25301, "the buffer is too small for the result",
      rule: "The caller provides the memory for the result in this call, and the result is larger.",
      effect: "The result was not returned.",
      action: "Ask for the size first, then provide as much."),
    makePage(
      "errSecDataTooLarge", -25302, "the data is too large for the call",
      rule: "The call does not handle data of this size.",
      effect: "Nothing was stored or returned.",
      action: "Store large data in a file, and the key that encrypts the file in the keychain."),
    makePage(
      "errSecDataNotAvailable", -25316, "the contents of the item cannot be returned",
      rule: "The item was found, but its contents were not available.",
      effect: "The secret was not returned.",
      action: "Unlock the device or the keychain, and make the call again."),
    makePage(
      "errSecKeySizeNotAllowed", -25311, "the key has a size that is not allowed",
      rule: "A type of key has only certain sizes.",
      effect: "No key was made or imported.",
      action: "Use a size that Apple's reference lists for the type of key."),
    makePage(
      "errSecUnsupportedFormat", -25256, "the data has a format that cannot be imported or exported",
      rule: "The format is known, but not for this kind of data.",
      effect: "Nothing was imported or exported.",
      action: "Convert the data, for example to PKCS #12 for a certificate with its key."),
    makePage(
      "errSecUnknownFormat", -25257, "the format of the data is not known",
      rule: "The data to import has none of the formats that the call recognizes.",
      effect: "Nothing was imported.",
      action: "Check that the file is complete, and name its format."),
    makePage(
      "errSecMultiplePrivKeys", -25259, "the data contains several private keys",
      rule: "The import was asked to accept only one.",
      effect: "Nothing was imported.",
      action: "Import the keys one at a time."),
    makePage(
      "errSecPassphraseRequired", -25260, "the import or the export needs a passphrase",
      rule: "A private key is imported or exported only with the passphrase that encrypts it.",
      effect: "Nothing was imported or exported.",
      action: "Pass the passphrase."),
    makePage(
      "errSecPkcs12VerifyFailure", -25264, "the PKCS #12 file does not match its authentication code",
      rule: "The code is computed from the contents and the passphrase. Either of them differs.",
      effect: "Nothing was imported.",
      action: "Check the passphrase. If it is right, the file is damaged: use another copy."),
    makePage(
      "errSecInternalComponent", -2070, "a part of the system failed",
      rule: "codesign reports this if it cannot use the private key, for example because the keychain is locked in a "
        + "session without a user interface, or because the key's access list does not name codesign.",
      effect: "Nothing was signed.",
      action: "Unlock the keychain with \"security unlock-keychain\", then try again.",
      source: header + "; Apple DTS, \"Resolving errSecInternalComponent errors during code signing\""),
    makePage(
      "errSecCoreFoundationUnknown", -4960, "Core Foundation failed for a reason that it does not name",
      rule: "The call uses Core Foundation, which reported no more specific error.",
      effect: "The call returned no result.",
      action: "Check the arguments, then make the call again."),
  ]
}

extension SecItemStatus {
  /// The explanation of the status.
  package var explanation: Explanation {
    switch self {
    case .success, .unimplemented, .parameter, .badRequest, .noSuchAttribute, .noSuchClass, .invalidItemReference:
      queryPage
    case .duplicateItem, .itemNotFound, .missingEntitlement, .restrictedAPI: itemPage
    case .interactionNotAllowed, .authFailed, .authNeeded, .userCanceled, .policyDenied, .upgradePending: accessPage
    case .diskFull, .ioError, .allocate, .notAvailable, .readOnly, .decode, .internalError, .serviceNotAvailable,
      .verifyFailed:
      storagePage
    }
  }

  private static let nothingDone = "Nothing was searched, returned or changed."

  private var queryPage: Explanation {
    switch self {
    case .success:
      .makePage(
        self, "the call succeeded",
        rule: "Every keychain call returns a status. 0 means that the call did what it was asked.",
        effect: "The result is valid.",
        action: "Nothing.")
    case .unimplemented:
      .makePage(
        self, "this kind of item cannot be searched in this way",
        rule: "The query has a match key that its class does not have, such as the issuer of a password.",
        effect: Self.nothingDone,
        action: "Leave the match key out, or search for certificates or identities.",
        see: "securityd, SecItemServer.c")
    case .parameter:
      .makePage(
        self, "a key or a value of the call is not valid",
        rule:
          "Nearly every malformed query gets this status: it has no class (kSecClass), a key that does not exist, a "
          + "value of the wrong type, or keys that cannot be combined.",
        effect: Self.nothingDone,
        action:
          "Compare the keys and the types of their values with Apple's reference for the call. SecItemUpdate accepts "
          + "neither return keys nor match keys, and SecItemDelete accepts no match keys.",
        see: "securityd, SecItemServer.c")
    case .badRequest:
      .makePage(
        self, "the call is not valid in the current state",
        rule: "An argument is not valid, or it is too late or too early for the call.",
        effect: "The call did nothing.",
        action: "Check the arguments, and whether the object of the call can still be used.")
    case .noSuchAttribute:
      .makePage(
        self, "the class has no such attribute",
        rule:
          "The query has an attribute of another class, such as a server for a generic password, or the changes of "
          + "SecItemUpdate have a key that is not an attribute.",
        effect: Self.nothingDone,
        action: "Leave the attribute out, or use the class that has it.",
        see: "securityd, SecDbQuery.c")
    case .noSuchClass:
      .makePage(
        self, "there is no such class of items",
        rule: "kSecClass has a value that is not one of Apple's classes, or a persistent reference is to an item of a "
          + "different class.",
        effect: Self.nothingDone,
        action: "Use one of the constants that begin with kSecClass.",
        see: "securityd, SecItemServer.c")
    // `invalidItemReference`
    default:
      .makePage(
        self, "the reference no longer refers to an item",
        rule: "A reference is to one item. It does not refer to a new item with the same attributes.",
        effect: Self.nothingDone,
        action: "Search for the item by its attributes, and keep the new reference.")
    }
  }

  private var itemPage: Explanation {
    switch self {
    case .duplicateItem:
      .makePage(
        self, "an item with the same primary key exists",
        rule: "A keychain has at most one item for each primary key. For a generic password this is the account, the "
          + "service, the access group and whether it syncs. The label, the generic data, the protection class and "
          + "the secret are not part of it.",
        effect: "SecItemAdd added nothing, or SecItemUpdate changed nothing.",
        action:
          "Change the existing item with SecItemUpdate. If your query does not find it, search only for the attributes "
          + "of the primary key.",
        see: "securityd, SecDbItem.c; Apple, \"errSecDuplicateItem\"")
    case .itemNotFound:
      .makePage(
        self, "no item matches",
        rule:
          "A query finds an item only if each attribute in the query equals that of the item, and the item is in one of "
          + "the app's access groups. It finds items that sync only if it asks for them.",
        effect:
          "Nothing was returned, changed or deleted. On a new phone, an app gets this status for an item that stayed "
          + "behind.",
        action:
          "Search with fewer attributes. For an item that stayed behind, see \"\(SuggestedCommands.explaining("stays-behind"))\".",
        see: "securityd, SecItemServer.c")
    case .missingEntitlement:
      .makePage(
        self, "the app may not use the access group",
        rule:
          "An app's signature lists the access groups that it may use: its keychain groups, its own identifier and its "
          + "app groups. The call names another group, or the process has none, such as a tool or a test without a "
          + "host app.",
        effect: "The call was refused. Items that exist are still there.",
        action: "Use one of the app's groups, or add the Keychain Sharing capability. Run tests in a host app.",
        see: "Apple, \"Sharing access to keychain items among a collection of apps\"")
    // `restrictedAPI`
    default:
      .makePage(
        self, "an App Clip may not do this",
        rule: "An App Clip may not add items that sync.",
        effect: "The item was not added.",
        action: "Add an item that does not sync, or make the call in the full app.",
        see: "securityd, SecItemServer.c")
    }
  }

  private var accessPage: Explanation {
    switch self {
    case .interactionNotAllowed:
      .makePage(
        self, "the device is locked, or the user would have to be asked",
        rule:
          "An item can be read and written only while the key of its class is in memory: \"when unlocked\" needs an "
          + "unlocked device, \"after first unlock\" one unlock since the start. An item that needs Face ID, Touch ID "
          + "or the passcode gives the same status to a call that forbids asking.",
        effect:
          "Nothing is lost: the same call succeeds later. An app that takes the item for missing signs its user out.",
        action:
          "Unlock the device. Developers: for work in the background, choose the class ck (after first unlock). On a "
          + "Mac without a user interface, unlock the keychain with \"security unlock-keychain\".",
        see: "Apple, \"Restricting keychain item accessibility\"")
    case .authFailed:
      .makePage(
        self, "the user could not be authenticated, or the device has no passcode",
        rule:
          "Face ID, Touch ID, the passcode or the password of a keychain file was not accepted. Adding an item of the "
          + "class akpu to a device without a passcode gives the same status.",
        effect: "The secret was not returned, or the item was not added.",
        action: "Authenticate again, or set a passcode on the device.",
        see: "securityd, SecItemServer.c")
    case .authNeeded:
      .makePage(
        self, "the user has to be authenticated first",
        rule: "The keychain uses this status inside, before it asks the user. An app does not normally get it.",
        effect: "The secret was not returned.",
        action: "Let the user authenticate, and make the call again.",
        isPrivate: true)
    case .userCanceled:
      .makePage(
        self, "the user dismissed the dialog",
        rule: "The item needs Face ID, Touch ID or the passcode, and the user canceled the dialog.",
        effect: "The secret was not returned, or the item was not changed.",
        action: "Nothing is wrong. Ask again when the user starts the action again.")
    case .upgradePending:
      .makePage(
        self, "the keychain is waiting to be converted to its newest format",
        rule:
          "After an update of iOS, the keychain's database may have to be converted. This needs keys that are in memory "
          + "only while the device is unlocked.",
        effect: "The keychain cannot be used until then.",
        action: "Unlock the device, and make the call again.",
        isPrivate: true)
    // `policyDenied`
    default:
      .makePage(
        self, "a policy forbids this",
        rule: "A policy of the system does not allow the operation. Apple's header says no more.",
        effect: "The call was refused.",
        action: "Check the restrictions of the device and the arguments of the call.")
    }
  }

  private var storagePage: Explanation {
    switch self {
    case .diskFull:
      .makePage(
        self, "no space is left",
        rule: "The keychain is a database file, and a change to it needs free space.",
        effect: "Nothing was changed.",
        action: "Free some space, and make the call again.")
    case .ioError:
      .makePage(
        self, "the keychain's file cannot be read or written",
        rule: "The system reported an error for the keychain's database.",
        effect: "The call changed nothing.",
        action: "Restart the device. If it happens again, make a backup while you can.")
    case .allocate:
      .makePage(
        self, "there is not enough memory",
        rule: "The system could not give the call the memory that it needs.",
        effect: "The call changed nothing.",
        action: "Search for fewer items at once, or without their secrets.")
    case .notAvailable:
      .makePage(
        self, "the keychain cannot be used",
        rule:
          "The database cannot be opened, or there is no key for the class of the item. Errors of the database and of "
          + "the key store that have no status of their own give this one too.",
        effect: "The item cannot be read or changed now.",
        action: "Unlock or restart the device, and make the call again.",
        see: "securityd, SecDbKeychainItem.m")
    case .readOnly:
      .makePage(
        self, "the keychain cannot be changed",
        rule: "The keychain file, on macOS, may only be read.",
        effect: "Nothing was changed.",
        action: "Check the permissions of the file, or write to another keychain.")
    case .decode:
      .makePage(
        self, "the item cannot be decrypted or read",
        rule:
          "Each encrypted item has a version, the class of its key and an authentication tag. Its bytes were changed, "
          + "or its key no longer exists: removing the passcode deletes the key of the class akpu. SecPKCS12Import "
          + "also returns this status, for data that is not PKCS #12.",
        effect: "The item is skipped, and iOS deletes it later.",
        action:
          "Restore the item from a backup, or sign in again. \"\(SuggestedCommands.verifying)\" checks every item of a backup.",
        see: "securityd, SecItemServer.c, SecDbKeychainItem.m")
    case .internalError:
      .makePage(
        self, "an error inside the keychain",
        rule: "The keychain got into a state that it does not expect.",
        effect: "The call did not do what it was asked.",
        action: "Make the call again. If it fails again, report it to Apple.",
        isPrivate: true)
    case .serviceNotAvailable:
      .makePage(
        self, "a service that the call needs is missing",
        rule: "The system's service did not answer, or does not exist here.",
        effect: "The call did nothing.",
        action: "Restart the device, and make the call again.")
    // `verifyFailed`
    default:
      .makePage(
        self, "a signature or a digest does not verify",
        rule: "The data is not what was signed, or another key signed it.",
        effect: "The data is not proven to be genuine.",
        action: "Do not rely on the data. Use another copy.")
    }
  }
}
