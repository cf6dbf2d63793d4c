import Basics
import Foundation
import KeychainFormats
import KeychainServices
import Testing

@Suite("The keychain constants of Apple's headers")
struct ConstantsTests {
  @Test(
    "The keys of a query have the values that securityd expects",
    arguments: [
      (kSecClass as String, "class"), (kSecMatchLimit as String, "m_Limit"),
      (kSecMatchLimitOne as String, "m_LimitOne"),
      (kSecMatchLimitAll as String, "m_LimitAll"), (kSecReturnData as String, "r_Data"),
      (kSecReturnAttributes as String, "r_Attributes"), (kSecReturnRef as String, "r_Ref"),
      (kSecReturnPersistentRef as String, "r_PersistentRef"), (kSecValueData as String, "v_Data"),
      (kSecValueRef as String, "v_Ref"), (kSecValuePersistentRef as String, "v_PersistentRef"),
      (kSecAttrSynchronizableAny as String, "syna"), (kSecUseAuthenticationUI as String, "u_AuthUI"),
      (kSecUseAuthenticationUIAllow as String, "u_AuthUIA"), (kSecUseAuthenticationUIFail as String, "u_AuthUIF"),
      (kSecUseAuthenticationUISkip as String, "u_AuthUIS"), (kSecUseAuthenticationContext as String, "u_AuthCtx"),
      (kSecUseDataProtectionKeychain as String, "nleg"), (kSecUseOperationPrompt as String, "u_OpPrompt"),
    ])
  func queryKeys(constant: String, value: String) { #expect(constant == value) }

  @Test("The item classes are the four tables of the database and the identity class")
  func classes() {
    let tables = [kSecClassGenericPassword, kSecClassInternetPassword, kSecClassCertificate, kSecClassKey]
    #expect(tables.map { $0 as String } == ["genp", "inet", "cert", "keys"])
    #expect(kSecClassIdentity as String == "idnt")
  }

  @Test("Each accessibility constant is a protection class, and each protection class has a constant")
  func accessible() {
    let values = [
      kSecAttrAccessibleWhenUnlocked, kSecAttrAccessibleAfterFirstUnlock, kSecAttrAccessibleAlways,
      kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, kSecAttrAccessibleWhenUnlockedThisDeviceOnly,
      kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, kSecAttrAccessibleAlwaysThisDeviceOnly,
    ]
    #expect(Set(values.compactMap { ProtectionClass(rawValue: $0 as String) }) == Set(ProtectionClass.allCases))
    #expect(kSecAttrAccessibleAlwaysPrivate == kSecAttrAccessibleAlways)
    #expect(kSecAttrAccessibleAlwaysThisDeviceOnlyPrivate == kSecAttrAccessibleAlwaysThisDeviceOnly)
  }

  @Test("Each attribute constant is an attribute of its kinds of items")
  func attributes() {
    let common = [
      kSecAttrAccessible, kSecAttrAccessControl, kSecAttrAccessGroup, kSecAttrSynchronizable, kSecAttrCreationDate,
      kSecAttrModificationDate, kSecAttrLabel, kSecAttrAlias, kSecAttrTokenID, kSecAttrSyncViewHint,
      kSecAttrPersistentReference,
    ]
    let passwords = [
      kSecAttrDescription, kSecAttrComment, kSecAttrCreator, kSecAttrType, kSecAttrScriptCode, kSecAttrIsInvisible,
      kSecAttrIsNegative, kSecAttrHasCustomIcon, kSecAttrAccount,
    ]
    let generic = [kSecAttrService, kSecAttrGeneric]
    let internet = [
      kSecAttrSecurityDomain, kSecAttrServer, kSecAttrProtocol, kSecAttrAuthenticationType, kSecAttrPort, kSecAttrPath,
      kSecDataInetExtraNotes, kSecDataInetExtraHistory, kSecDataInetExtraClientDefined0,
      kSecDataInetExtraClientDefined1, kSecDataInetExtraClientDefined2, kSecDataInetExtraClientDefined3,
    ]
    let certificates = [
      kSecAttrSubject, kSecAttrIssuer, kSecAttrSerialNumber, kSecAttrSubjectKeyID, kSecAttrPublicKeyHash,
      kSecAttrCertificateType, kSecAttrCertificateEncoding,
    ]
    let keys = [
      kSecAttrKeyClass, kSecAttrApplicationLabel, kSecAttrApplicationTag, kSecAttrIsPermanent, kSecAttrIsPrivate,
      kSecAttrIsModifiable, kSecAttrKeyCreator, kSecAttrKeyType, kSecAttrKeySizeInBits, kSecAttrEffectiveKeySize,
      kSecAttrStartDate, kSecAttrEndDate, kSecAttrIsSensitive, kSecAttrWasAlwaysSensitive, kSecAttrIsExtractable,
      kSecAttrWasNeverExtractable, kSecAttrCanEncrypt, kSecAttrCanDecrypt, kSecAttrCanDerive, kSecAttrCanSign,
      kSecAttrCanVerify, kSecAttrCanSignRecover, kSecAttrCanVerifyRecover, kSecAttrCanWrap, kSecAttrCanUnwrap,
    ]
    let expected: [(ItemKind, [CFString])] = [
      (.genericPassword, common + passwords + generic), (.internetPassword, common + passwords + internet),
      (.certificate, common + certificates), (.key, common + keys),
    ]
    for (kind, constants) in expected {
      let unknownConstants = constants.map { $0 as String }.filter { code in
        AttributeTable.definition(of: AttributeCode(rawValue: code), in: kind) == nil
      }
      #expect(unknownConstants.isEmpty, "\(kind)")
    }
  }

  @Test("Protocols and authentication types are distinct four-character codes")
  func fourCharacters() {
    let protocols = [
      kSecAttrProtocolFTP, kSecAttrProtocolFTPAccount, kSecAttrProtocolHTTP, kSecAttrProtocolIRC, kSecAttrProtocolNNTP,
      kSecAttrProtocolPOP3, kSecAttrProtocolSMTP, kSecAttrProtocolSOCKS, kSecAttrProtocolIMAP, kSecAttrProtocolLDAP,
      kSecAttrProtocolAppleTalk, kSecAttrProtocolAFP, kSecAttrProtocolTelnet, kSecAttrProtocolSSH,
      kSecAttrProtocolFTPS, kSecAttrProtocolHTTPS, kSecAttrProtocolHTTPProxy, kSecAttrProtocolHTTPSProxy,
      kSecAttrProtocolFTPProxy, kSecAttrProtocolSMB, kSecAttrProtocolRTSP, kSecAttrProtocolRTSPProxy,
      kSecAttrProtocolDAAP, kSecAttrProtocolEPPC, kSecAttrProtocolIPP, kSecAttrProtocolNNTPS, kSecAttrProtocolLDAPS,
      kSecAttrProtocolTelnetS, kSecAttrProtocolIMAPS, kSecAttrProtocolIRCS, kSecAttrProtocolPOP3S,
    ].map { $0 as String }
    // The number of protocols in the list, so no two are equal.
    #expect(Set(protocols).count == 31)
    #expect(protocols.allSatisfy { $0.utf8.count == 4 })
    let paddedWithSpace = [kSecAttrProtocolFTP, kSecAttrProtocolSSH, kSecAttrProtocolSMB, kSecAttrProtocolIPP]
    #expect(paddedWithSpace.map { $0 as String } == ["ftp ", "ssh ", "smb ", "ipp "])
    #expect([kSecAttrProtocolHTTPS, kSecAttrProtocolSOCKS].map { $0 as String } == ["htps", "sox "])

    let types = [
      kSecAttrAuthenticationTypeNTLM, kSecAttrAuthenticationTypeMSN, kSecAttrAuthenticationTypeDPA,
      kSecAttrAuthenticationTypeRPA, kSecAttrAuthenticationTypeHTTPBasic, kSecAttrAuthenticationTypeHTTPDigest,
      kSecAttrAuthenticationTypeHTMLForm, kSecAttrAuthenticationTypeDefault,
    ].map { $0 as String }
    #expect(types == ["ntlm", "msna", "dpaa", "rpaa", "http", "httd", "form", "dflt"])
  }

  @Test("Key classes and key types are the decimal CSSM numbers")
  func keys() {
    let classes = [kSecAttrKeyClassPublic, kSecAttrKeyClassPrivate, kSecAttrKeyClassSymmetric]
    #expect(classes.map { $0 as String } == ["0", "1", "2"])
    let types = [kSecAttrKeyTypeRSA, kSecAttrKeyTypeEC, kSecAttrKeyTypeECSECPrimeRandom]
    #expect(types.map { $0 as String } == ["42", "73", "73"])
  }

  @Test(
    "Each status has Apple's number and a distinct message, and the message of an unknown status includes its number")
  func statuses() throws {
    let numbers: [OSStatus: OSStatus] = [
      errSecSuccess: 0, errSecUnimplemented: -4, errSecDiskFull: -34, errSecIO: -36, errSecParam: -50,
      errSecAllocate: -108, errSecUserCanceled: -128, errSecBadReq: -909, errSecMissingEntitlement: -34018,
      errSecUpgradePending: -34019, errSecRestrictedAPI: -34020, errSecNotAvailable: -25291, errSecReadOnly: -25292,
      errSecAuthFailed: -25293, errSecDuplicateItem: -25299, errSecItemNotFound: -25300, errSecNoSuchAttr: -25303,
      errSecInvalidItemRef: -25304, errSecNoSuchClass: -25306, errSecInteractionNotAllowed: -25308,
      errSecAuthNeeded: -25330, errSecPolicyDenied: -26270, errSecDecode: -26275, errSecInternal: -26276,
      errSecServiceNotAvailable: -67585, errSecVerifyFailed: -67808,
    ]
    #expect(numbers.allSatisfy { $0.key == $0.value })
    let messages = try numbers.keys.map { try #require(SecCopyErrorMessageString($0, nil)) as String }
    #expect(Set(messages).count == 26)
    // A message is a sentence, and does not depend on the function that returned the status.
    #expect(messages.allSatisfy { $0.hasSuffix(".") && !$0.contains("SecItem") })
    #expect(SecCopyErrorMessageString(-7, nil) == "The status -7 is not a keychain status.")
  }

  @Test(
    "The message of a status has the expected text",
    arguments: [
      (0, "The call did what it was asked."),
      (-4, "This kind of item cannot be searched in this way."),
      (-34, "There is no space left on the disk."),
      (-36, "The keychain's file could not be read or written."),
      (-50, "A key or a value of the call is not valid, or some of them do not go together."),
      (-128, "The user dismissed the dialog."),
      (-34018, "The app has no access group, or none that allows this."),
      (-34020, "An App Clip may not do this."),
      (-25291, "The keychain cannot be used."),
      (-25293, "The user could not be authenticated, or the device has no passcode and the item needs one."),
      (-25299, "An item with the same primary key already exists."),
      (-25300, "No item matches."),
      (-25303, "This class of items has no such attribute."),
      (-25306, "The item class does not exist, or the reference is to an item of another class."),
      (-25308, "The device is locked, or the call forbids a necessary prompt."),
      (-26275, "The item's bytes cannot be decrypted or read."),
    ] as [(OSStatus, String)])
  func message(of status: OSStatus, expectedMessage: String) throws {
    #expect(try #require(SecCopyErrorMessageString(status, nil)) as String == expectedMessage)
  }

  @Test(
    "The statuses that Keyhaul does not return have the numbers of Apple's header",
    arguments: [
      (errSecOpWr, -49), (errSecWrPerm, -61), (errSecInternalComponent, -2070), (errSecCoreFoundationUnknown, -4960),
      (errSecPolicyNotFound, -25241), (errSecPassphraseRequired, -25260), (errSecPkcs12VerifyFailure, -25264),
      (errSecNoSuchKeychain, -25294), (errSecDataTooLarge, -25302), (errSecInteractionRequired, -25315),
      (errSecCreateChainFailed, -25318), (errSecInDarkWake, -25320), (errSecNotSigner, -26267),
      (errSecHostNameMismatch, -67602), (errSecUnknownCriticalExtensionFlag, -67603),
      (errSecNoBasicConstraints, -67604),
      (errSecPathLengthConstraintExceeded, -67611), (errSecCRLExpired, -67613), (errSecMobileMeServerError, -67659),
      (errSecNotInitialized, -67667), (errSecInvalidData, -67673), (errSecInvalidCertificateGroup, -67691),
      (errSecUnsupportedKeySize, -67735), (errSecInvalidAlgorithm, -67747), (errSecMissingAttributeSalt, -67753),
      (errSecMissingAttributeWrappedKeyFormat, -67805), (errSecInvalidDigestAlgorithm, -67815),
      (errSecCertificateExpired, -67818), (errSecCertificateNotValidYet, -67819), (errSecCertificateRevoked, -67820),
      (errSecInvaldCRLAuthority, -67827), (errSecNotTrusted, -67843), (errSecInvalidTupleCredendtials, -67852),
      (errSecTimestampMissing, -67882), (errSecCertificateValidityPeriodTooLong, -67901),
      (errSecCertificateIsCA, -67902),
    ] as [(OSStatus, OSStatus)])
  func number(_ constant: OSStatus, _ number: OSStatus) { #expect(constant == number) }

  @Test("Each status from -67585 to -67903 and each keychain status has a distinct message")
  func everyMessage() throws {
    let keychainStatuses: [OSStatus] =
      [-49, -61, -2070, -4960, -26267] + Array(-25264...(-25256)) + Array(-25245...(-25240)) + Array(-25320...(-25291))
    let statuses = Array(-67903...(-67585)) + keychainStatuses
    func message(_ status: OSStatus) throws -> String {
      try #require(SecCopyErrorMessageString(status, nil)) as String
    }
    func isUnknown(_ message: String) -> Bool { message.hasSuffix("is not a keychain status.") }
    // Checks that `isUnknown` detects an unknown status, here the number next to the range.
    #expect(try isUnknown(message(-67584)))
    let messages = try statuses.map(message)
    #expect(zip(statuses, messages).filter { isUnknown($1) }.map(\.0) == [])
    #expect(messages.allSatisfy { $0.hasSuffix(".") && $0.first?.isUppercase == true })
    let repeatedMessages = Dictionary(grouping: zip(statuses, messages), by: \.1).filter { $0.value.count > 1 }
    #expect(repeatedMessages.isEmpty, "\(repeatedMessages)")
  }
}
