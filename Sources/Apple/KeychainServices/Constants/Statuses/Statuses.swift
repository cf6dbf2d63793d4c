// Results of keychain calls. Source: Apple `SecBase.h`, and `SecBasePriv.h` for private statuses.

/// The Carbon name of `errSecSuccess`.
public let noErr: OSStatus = 0
/// The call succeeded.
public let errSecSuccess: OSStatus = 0
/// This kind of item cannot be searched in this way.
public let errSecUnimplemented: OSStatus = -4
/// There is no space left on the disk.
public let errSecDiskFull: OSStatus = -34
/// The keychain's file cannot be read or written.
public let errSecIO: OSStatus = -36
/// A key or value of the call is not valid, or a combination is not allowed.
public let errSecParam: OSStatus = -50
/// There is not enough memory.
public let errSecAllocate: OSStatus = -108
/// The user dismissed the dialog.
public let errSecUserCanceled: OSStatus = -128
/// The call is not valid in the current state.
public let errSecBadReq: OSStatus = -909
/// The app is not installed on the device, or has no access group that allows the call.
public let errSecMissingEntitlement: OSStatus = -34018
/// The keychain is waiting to be converted to a new format. Virtual devices never return this private status of Apple.
public let errSecUpgradePending: OSStatus = -34019
/// An App Clip may not do this.
public let errSecRestrictedAPI: OSStatus = -34020
/// The keychain cannot be used, or another process uses the device.
public let errSecNotAvailable: OSStatus = -25291
/// The keychain cannot be changed.
public let errSecReadOnly: OSStatus = -25292
/// The user could not be authenticated, or an item requires a passcode and the device has none.
public let errSecAuthFailed: OSStatus = -25293
/// An item with the same primary key exists.
public let errSecDuplicateItem: OSStatus = -25299
/// No item matches.
public let errSecItemNotFound: OSStatus = -25300
/// The class has no such attribute.
public let errSecNoSuchAttr: OSStatus = -25303
/// The reference no longer refers to an item.
public let errSecInvalidItemRef: OSStatus = -25304
/// There is no such class, or the reference is to an item of another class.
public let errSecNoSuchClass: OSStatus = -25306
/// The device is locked, or authentication is required but not possible.
public let errSecInteractionNotAllowed: OSStatus = -25308
/// The user has to be authenticated first. A private status of Apple.
public let errSecAuthNeeded: OSStatus = -25330
/// A policy forbids this.
public let errSecPolicyDenied: OSStatus = -26270
/// The item's bytes cannot be decrypted or read.
public let errSecDecode: OSStatus = -26275
/// Something went wrong inside the keychain. A private status of Apple.
public let errSecInternal: OSStatus = -26276
/// A service that the call needs is missing.
public let errSecServiceNotAvailable: OSStatus = -67585
/// A signature or a digest does not verify.
public let errSecVerifyFailed: OSStatus = -67808

// Results of operations with keys and their attributes. No call of this keychain returns them, but apps compare with
// them and show their messages.
// Source: Apple `SecBase.h`.

/// The attribute for the key is not valid.
public let errSecInvalidAttributeKey: OSStatus = -67748
/// The attribute for the key is missing.
public let errSecMissingAttributeKey: OSStatus = -67749
/// The attribute for the initialization vector is not valid.
public let errSecInvalidAttributeInitVector: OSStatus = -67750
/// The attribute for the initialization vector is missing.
public let errSecMissingAttributeInitVector: OSStatus = -67751
/// The attribute for the salt is not valid.
public let errSecInvalidAttributeSalt: OSStatus = -67752
/// The attribute for the salt is missing.
public let errSecMissingAttributeSalt: OSStatus = -67753
/// The attribute for the padding is not valid.
public let errSecInvalidAttributePadding: OSStatus = -67754
/// The attribute for the padding is missing.
public let errSecMissingAttributePadding: OSStatus = -67755
/// The attribute for the random number is not valid.
public let errSecInvalidAttributeRandom: OSStatus = -67756
/// The attribute for the random number is missing.
public let errSecMissingAttributeRandom: OSStatus = -67757
/// The attribute for the seed is not valid.
public let errSecInvalidAttributeSeed: OSStatus = -67758
/// The attribute for the seed is missing.
public let errSecMissingAttributeSeed: OSStatus = -67759
/// The attribute for the passphrase is not valid.
public let errSecInvalidAttributePassphrase: OSStatus = -67760
/// The attribute for the passphrase is missing.
public let errSecMissingAttributePassphrase: OSStatus = -67761
/// The attribute for the key length is not valid.
public let errSecInvalidAttributeKeyLength: OSStatus = -67762
/// The attribute for the key length is missing.
public let errSecMissingAttributeKeyLength: OSStatus = -67763
/// The attribute for the block size is not valid.
public let errSecInvalidAttributeBlockSize: OSStatus = -67764
/// The attribute for the block size is missing.
public let errSecMissingAttributeBlockSize: OSStatus = -67765
/// The attribute for the output size is not valid.
public let errSecInvalidAttributeOutputSize: OSStatus = -67766
/// The attribute for the output size is missing.
public let errSecMissingAttributeOutputSize: OSStatus = -67767
/// The attribute for the rounds is not valid.
public let errSecInvalidAttributeRounds: OSStatus = -67768
/// The attribute for the rounds is missing.
public let errSecMissingAttributeRounds: OSStatus = -67769
/// The parameters of the algorithm are not valid.
public let errSecInvalidAlgorithmParms: OSStatus = -67770
/// The parameters of the algorithm are missing.
public let errSecMissingAlgorithmParms: OSStatus = -67771
/// The attribute for the label is not valid.
public let errSecInvalidAttributeLabel: OSStatus = -67772
/// The attribute for the label is missing.
public let errSecMissingAttributeLabel: OSStatus = -67773
/// The attribute for the key type is not valid.
public let errSecInvalidAttributeKeyType: OSStatus = -67774
/// The attribute for the key type is missing.
public let errSecMissingAttributeKeyType: OSStatus = -67775
/// The attribute for the mode is not valid.
public let errSecInvalidAttributeMode: OSStatus = -67776
/// The attribute for the mode is missing.
public let errSecMissingAttributeMode: OSStatus = -67777
/// The attribute for the effective bits is not valid.
public let errSecInvalidAttributeEffectiveBits: OSStatus = -67778
/// The attribute for the effective bits is missing.
public let errSecMissingAttributeEffectiveBits: OSStatus = -67779
/// The attribute for the start date is not valid.
public let errSecInvalidAttributeStartDate: OSStatus = -67780
/// The attribute for the start date is missing.
public let errSecMissingAttributeStartDate: OSStatus = -67781
/// The attribute for the end date is not valid.
public let errSecInvalidAttributeEndDate: OSStatus = -67782
/// The attribute for the end date is missing.
public let errSecMissingAttributeEndDate: OSStatus = -67783
/// The attribute for the version is not valid.
public let errSecInvalidAttributeVersion: OSStatus = -67784
/// The attribute for the version is missing.
public let errSecMissingAttributeVersion: OSStatus = -67785
/// The attribute for the prime is not valid.
public let errSecInvalidAttributePrime: OSStatus = -67786
/// The attribute for the prime is missing.
public let errSecMissingAttributePrime: OSStatus = -67787
/// The attribute for the base is not valid.
public let errSecInvalidAttributeBase: OSStatus = -67788
/// The attribute for the base is missing.
public let errSecMissingAttributeBase: OSStatus = -67789
/// The attribute for the subprime is not valid.
public let errSecInvalidAttributeSubprime: OSStatus = -67790
/// The attribute for the subprime is missing.
public let errSecMissingAttributeSubprime: OSStatus = -67791
/// The attribute for the iteration count is not valid.
public let errSecInvalidAttributeIterationCount: OSStatus = -67792
/// The attribute for the iteration count is missing.
public let errSecMissingAttributeIterationCount: OSStatus = -67793
/// The attribute for the database handle is not valid.
public let errSecInvalidAttributeDLDBHandle: OSStatus = -67794
/// The attribute for the database handle is missing.
public let errSecMissingAttributeDLDBHandle: OSStatus = -67795
/// The attribute for the access credentials is not valid.
public let errSecInvalidAttributeAccessCredentials: OSStatus = -67796
/// The attribute for the access credentials is missing.
public let errSecMissingAttributeAccessCredentials: OSStatus = -67797
/// The attribute for the public key format is not valid.
public let errSecInvalidAttributePublicKeyFormat: OSStatus = -67798
/// The attribute for the public key format is missing.
public let errSecMissingAttributePublicKeyFormat: OSStatus = -67799
/// The attribute for the private key format is not valid.
public let errSecInvalidAttributePrivateKeyFormat: OSStatus = -67800
/// The attribute for the private key format is missing.
public let errSecMissingAttributePrivateKeyFormat: OSStatus = -67801
/// The attribute for the symmetric key format is not valid.
public let errSecInvalidAttributeSymmetricKeyFormat: OSStatus = -67802
/// The attribute for the symmetric key format is missing.
public let errSecMissingAttributeSymmetricKeyFormat: OSStatus = -67803
/// The attribute for the wrapped key format is not valid.
public let errSecInvalidAttributeWrappedKeyFormat: OSStatus = -67804
/// The attribute for the wrapped key format is missing.
public let errSecMissingAttributeWrappedKeyFormat: OSStatus = -67805
/// A staged operation is in progress.
public let errSecStagedOperationInProgress: OSStatus = -67806
/// The staged operation was not started.
public let errSecStagedOperationNotStarted: OSStatus = -67807
/// The query size is unknown.
public let errSecQuerySizeUnknown: OSStatus = -67809
/// The block sizes differ.
public let errSecBlockSizeMismatch: OSStatus = -67810
/// The public key is inconsistent.
public let errSecPublicKeyInconsistent: OSStatus = -67811
/// The device could not be verified.
public let errSecDeviceVerifyFailed: OSStatus = -67812
/// The login name is not valid.
public let errSecInvalidLoginName: OSStatus = -67813

// Results of keychains, of import and export, and of policies. No call of this keychain returns them, but apps compare
// with them and show their messages.
// Source: Apple `SecBase.h`.

/// The file is already open for writing.
public let errSecOpWr: OSStatus = -49
/// Writing is not permitted.
public let errSecWrPerm: OSStatus = -61
/// A component of the system failed.
public let errSecInternalComponent: OSStatus = -2070
/// Core Foundation failed for an unknown reason.
public let errSecCoreFoundationUnknown: OSStatus = -4960
/// The access control list is not in the standard form.
public let errSecACLNotSimple: OSStatus = -25240
/// The policy was not found.
public let errSecPolicyNotFound: OSStatus = -25241
/// The trust setting is not valid.
public let errSecInvalidTrustSetting: OSStatus = -25242
/// The item has no access control.
public let errSecNoAccessForItem: OSStatus = -25243
/// The item's owner cannot be changed in this way.
public let errSecInvalidOwnerEdit: OSStatus = -25244
/// No trust evaluation result is available.
public let errSecTrustNotAvailable: OSStatus = -25245
/// This format cannot be imported or exported.
public let errSecUnsupportedFormat: OSStatus = -25256
/// The format of the import is unknown.
public let errSecUnknownFormat: OSStatus = -25257
/// The key can be exported only wrapped.
public let errSecKeyIsSensitive: OSStatus = -25258
/// The import contains more than one private key.
public let errSecMultiplePrivKeys: OSStatus = -25259
/// The import or export requires a passphrase.
public let errSecPassphraseRequired: OSStatus = -25260
/// The reference to the password is not valid.
public let errSecInvalidPasswordRef: OSStatus = -25261
/// The record of trust settings is damaged.
public let errSecInvalidTrustSettings: OSStatus = -25262
/// There are no trust settings.
public let errSecNoTrustSettings: OSStatus = -25263
/// The PKCS#12 file does not match its authentication code, or the password is wrong.
public let errSecPkcs12VerifyFailure: OSStatus = -25264
/// There is no such keychain.
public let errSecNoSuchKeychain: OSStatus = -25294
/// The file is not a keychain.
public let errSecInvalidKeychain: OSStatus = -25295
/// A keychain with this name already exists.
public let errSecDuplicateKeychain: OSStatus = -25296
/// This callback is already registered.
public let errSecDuplicateCallback: OSStatus = -25297
/// The callback is not valid.
public let errSecInvalidCallback: OSStatus = -25298
/// The buffer is too small.
public let errSecBufferTooSmall: OSStatus = -25301
/// The data is too large, or is in a format that cannot be displayed.
public let errSecDataTooLarge: OSStatus = -25302
/// The search cannot be used.
public let errSecInvalidSearchRef: OSStatus = -25305
/// There is no default keychain.
public let errSecNoDefaultKeychain: OSStatus = -25307
/// The attribute cannot be changed.
public let errSecReadOnlyAttr: OSStatus = -25309
/// The keychain was created by an incompatible version of the system.
public let errSecWrongSecVersion: OSStatus = -25310
/// The key is too small or too large.
public let errSecKeySizeNotAllowed: OSStatus = -25311
/// The storage module could not be loaded.
public let errSecNoStorageModule: OSStatus = -25312
/// The certificate module could not be loaded.
public let errSecNoCertificateModule: OSStatus = -25313
/// The policy module could not be loaded.
public let errSecNoPolicyModule: OSStatus = -25314
/// User interaction is required but not allowed.
public let errSecInteractionRequired: OSStatus = -25315
/// The item's contents are not available.
public let errSecDataNotAvailable: OSStatus = -25316
/// The item's contents cannot be changed.
public let errSecDataNotModifiable: OSStatus = -25317
/// A certificate of the chain is missing.
public let errSecCreateChainFailed: OSStatus = -25318
/// The domain of the preferences is not valid.
public let errSecInvalidPrefsDomain: OSStatus = -25319
/// The system is in dark wake, so no dialog can be shown.
public let errSecInDarkWake: OSStatus = -25320
/// The certificate was not signed by its stated issuer.
public let errSecNotSigner: OSStatus = -26267

// Results of modules, databases and keys. No call of this keychain returns them, but apps compare with them and show
// their messages.
// Source: Apple `SecBase.h`.

/// The module was not initialized before the call.
public let errSecNotInitialized: OSStatus = -67667
/// The handle is for another kind of service.
public let errSecInvalidHandleUsage: OSStatus = -67668
/// The caller is not in the list of allowed callers.
public let errSecPVCReferentNotFound: OSStatus = -67669
/// A function's address is outside its verified module.
public let errSecFunctionIntegrityFail: OSStatus = -67670
/// An internal error occurred.
public let errSecInternalError: OSStatus = -67671
/// A memory error occurred.
public let errSecMemoryError: OSStatus = -67672
/// The data is not valid.
public let errSecInvalidData: OSStatus = -67673
/// The module directory service failed.
public let errSecMDSError: OSStatus = -67674
/// The pointer is not valid.
public let errSecInvalidPointer: OSStatus = -67675
/// The module's self-check failed.
public let errSecSelfCheckFailed: OSStatus = -67676
/// The function failed.
public let errSecFunctionFailed: OSStatus = -67677
/// The module's manifest could not be verified.
public let errSecModuleManifestVerifyFailed: OSStatus = -67678
/// The GUID is not valid.
public let errSecInvalidGUID: OSStatus = -67679
/// The handle is not valid.
public let errSecInvalidHandle: OSStatus = -67680
/// The list of databases is not valid.
public let errSecInvalidDBList: OSStatus = -67681
/// The passthrough identifier is not valid.
public let errSecInvalidPassthroughID: OSStatus = -67682
/// The network address is not valid.
public let errSecInvalidNetworkAddress: OSStatus = -67683
/// The revocation list is already signed.
public let errSecCRLAlreadySigned: OSStatus = -67684
/// The number of fields is not valid.
public let errSecInvalidNumberOfFields: OSStatus = -67685
/// The verification failed.
public let errSecVerificationFailure: OSStatus = -67686
/// The tag is unknown.
public let errSecUnknownTag: OSStatus = -67687
/// The signature is not valid.
public let errSecInvalidSignature: OSStatus = -67688
/// The name is not valid.
public let errSecInvalidName: OSStatus = -67689
/// The certificate reference is not valid.
public let errSecInvalidCertificateRef: OSStatus = -67690
/// The certificate group is not valid.
public let errSecInvalidCertificateGroup: OSStatus = -67691
/// The tag was not found.
public let errSecTagNotFound: OSStatus = -67692
/// The query is not valid.
public let errSecInvalidQuery: OSStatus = -67693
/// The value is not valid.
public let errSecInvalidValue: OSStatus = -67694
/// The callback failed.
public let errSecCallbackFailed: OSStatus = -67695
/// The access control list could not be deleted.
public let errSecACLDeleteFailed: OSStatus = -67696
/// The access control list could not be replaced.
public let errSecACLReplaceFailed: OSStatus = -67697
/// The access control list could not be added.
public let errSecACLAddFailed: OSStatus = -67698
/// The access control list could not be changed.
public let errSecACLChangeFailed: OSStatus = -67699
/// The access credentials are not valid.
public let errSecInvalidAccessCredentials: OSStatus = -67700
/// The record is not valid.
public let errSecInvalidRecord: OSStatus = -67701
/// The access control list is not valid.
public let errSecInvalidACL: OSStatus = -67702
/// The sample value is not valid.
public let errSecInvalidSampleValue: OSStatus = -67703
/// The versions are not compatible.
public let errSecIncompatibleVersion: OSStatus = -67704
/// The privilege was not granted.
public let errSecPrivilegeNotGranted: OSStatus = -67705
/// The scope is not valid.
public let errSecInvalidScope: OSStatus = -67706
/// Pointer validation checking is already configured.
public let errSecPVCAlreadyConfigured: OSStatus = -67707
/// The pointer validation checking is not valid.
public let errSecInvalidPVC: OSStatus = -67708
/// The module manager could not be loaded.
public let errSecEMMLoadFailed: OSStatus = -67709
/// The module manager could not be unloaded.
public let errSecEMMUnloadFailed: OSStatus = -67710
/// The add-in could not be loaded.
public let errSecAddinLoadFailed: OSStatus = -67711
/// The key reference is not valid.
public let errSecInvalidKeyRef: OSStatus = -67712
/// The key hierarchy is not valid.
public let errSecInvalidKeyHierarchy: OSStatus = -67713
/// The add-in could not be unloaded.
public let errSecAddinUnloadFailed: OSStatus = -67714
/// The library reference was not found.
public let errSecLibraryReferenceNotFound: OSStatus = -67715
/// The add-in function table is not valid.
public let errSecInvalidAddinFunctionTable: OSStatus = -67716
/// The service mask is not valid.
public let errSecInvalidServiceMask: OSStatus = -67717
/// The module is not loaded.
public let errSecModuleNotLoaded: OSStatus = -67718
/// The subservice identifier is not valid.
public let errSecInvalidSubServiceID: OSStatus = -67719
/// The attribute is not in the context.
public let errSecAttributeNotInContext: OSStatus = -67720
/// A module could not be initialized.
public let errSecModuleManagerInitializeFailed: OSStatus = -67721
/// A module was not found.
public let errSecModuleManagerNotFound: OSStatus = -67722
/// The event notification callback was not found.
public let errSecEventNotificationCallbackNotFound: OSStatus = -67723
/// The input has the wrong length.
public let errSecInputLengthError: OSStatus = -67724
/// The output has the wrong length.
public let errSecOutputLengthError: OSStatus = -67725
/// The privilege is not supported.
public let errSecPrivilegeNotSupported: OSStatus = -67726
/// A device error occurred.
public let errSecDeviceError: OSStatus = -67727
/// The handle is in use.
public let errSecAttachHandleBusy: OSStatus = -67728
/// No user is logged in.
public let errSecNotLoggedIn: OSStatus = -67729
/// The algorithms differ.
public let errSecAlgorithmMismatch: OSStatus = -67730
/// The key is not for this usage.
public let errSecKeyUsageIncorrect: OSStatus = -67731
/// The type of the key's data is wrong.
public let errSecKeyBlobTypeIncorrect: OSStatus = -67732
/// The key's header is inconsistent.
public let errSecKeyHeaderInconsistent: OSStatus = -67733
/// The key format is not supported.
public let errSecUnsupportedKeyFormat: OSStatus = -67734
/// The key size is not supported.
public let errSecUnsupportedKeySize: OSStatus = -67735
/// The key usage mask is not valid.
public let errSecInvalidKeyUsageMask: OSStatus = -67736
/// The key usage mask is not supported.
public let errSecUnsupportedKeyUsageMask: OSStatus = -67737
/// The key attribute mask is not valid.
public let errSecInvalidKeyAttributeMask: OSStatus = -67738
/// The key attribute mask is not supported.
public let errSecUnsupportedKeyAttributeMask: OSStatus = -67739
/// The key label is not valid.
public let errSecInvalidKeyLabel: OSStatus = -67740
/// The key label is not supported.
public let errSecUnsupportedKeyLabel: OSStatus = -67741
/// The key format is not valid.
public let errSecInvalidKeyFormat: OSStatus = -67742
/// A vector of several buffers is not supported.
public let errSecUnsupportedVectorOfBuffers: OSStatus = -67743
/// The input vector is not valid.
public let errSecInvalidInputVector: OSStatus = -67744
/// The output vector is not valid.
public let errSecInvalidOutputVector: OSStatus = -67745
/// The context is not valid.
public let errSecInvalidContext: OSStatus = -67746
/// The algorithm is not valid.
public let errSecInvalidAlgorithm: OSStatus = -67747

// Results of trust policies, data stores and time stamps. No call of this keychain returns them, but apps compare with
// them and show their messages.
// Source: Apple `SecBase.h`.

/// A user is already logged in.
public let errSecAlreadyLoggedIn: OSStatus = -67814
/// The digest algorithm is not valid.
public let errSecInvalidDigestAlgorithm: OSStatus = -67815
/// The revocation list group is not valid.
public let errSecInvalidCRLGroup: OSStatus = -67816
/// The certificate cannot do this.
public let errSecCertificateCannotOperate: OSStatus = -67817
/// The certificate has expired.
public let errSecCertificateExpired: OSStatus = -67818
/// The certificate is not valid yet.
public let errSecCertificateNotValidYet: OSStatus = -67819
/// The certificate was revoked.
public let errSecCertificateRevoked: OSStatus = -67820
/// The certificate is suspended.
public let errSecCertificateSuspended: OSStatus = -67821
/// The credentials are not sufficient.
public let errSecInsufficientCredentials: OSStatus = -67822
/// The action is not valid.
public let errSecInvalidAction: OSStatus = -67823
/// The authority is not valid.
public let errSecInvalidAuthority: OSStatus = -67824
/// The action of the verification failed.
public let errSecVerifyActionFailed: OSStatus = -67825
/// The certificate's authority is not valid.
public let errSecInvalidCertAuthority: OSStatus = -67826
/// The revocation list authority is not valid.
public let errSecInvalidCRLAuthority: OSStatus = -67827
/// The revocation list encoding is not valid.
public let errSecInvalidCRLEncoding: OSStatus = -67828
/// The revocation list type is not valid.
public let errSecInvalidCRLType: OSStatus = -67829
/// The revocation list is not valid.
public let errSecInvalidCRL: OSStatus = -67830
/// The form type is not valid.
public let errSecInvalidFormType: OSStatus = -67831
/// The ID is not valid.
public let errSecInvalidID: OSStatus = -67832
/// The identifier is not valid.
public let errSecInvalidIdentifier: OSStatus = -67833
/// The index is not valid.
public let errSecInvalidIndex: OSStatus = -67834
/// The policy identifiers are not valid.
public let errSecInvalidPolicyIdentifiers: OSStatus = -67835
/// The time is not valid.
public let errSecInvalidTimeString: OSStatus = -67836
/// The reason is not valid.
public let errSecInvalidReason: OSStatus = -67837
/// The request inputs are not valid.
public let errSecInvalidRequestInputs: OSStatus = -67838
/// The response vector is not valid.
public let errSecInvalidResponseVector: OSStatus = -67839
/// The stop-on policy is not valid.
public let errSecInvalidStopOnPolicy: OSStatus = -67840
/// The tuple is not valid.
public let errSecInvalidTuple: OSStatus = -67841
/// Several values are not supported.
public let errSecMultipleValuesUnsupported: OSStatus = -67842
/// The certificate is not trusted.
public let errSecNotTrusted: OSStatus = -67843
/// There is no default authority.
public let errSecNoDefaultAuthority: OSStatus = -67844
/// The form was rejected.
public let errSecRejectedForm: OSStatus = -67845
/// The request was lost.
public let errSecRequestLost: OSStatus = -67846
/// The request was rejected.
public let errSecRequestRejected: OSStatus = -67847
/// The address type is not supported.
public let errSecUnsupportedAddressType: OSStatus = -67848
/// The service is not supported.
public let errSecUnsupportedService: OSStatus = -67849
/// The tuple group is not valid.
public let errSecInvalidTupleGroup: OSStatus = -67850
/// The base access control lists are not valid.
public let errSecInvalidBaseACLs: OSStatus = -67851
/// The tuple credentials are not valid.
public let errSecInvalidTupleCredentials: OSStatus = -67852
/// The encoding is not valid.
public let errSecInvalidEncoding: OSStatus = -67853
/// The validity period is not valid.
public let errSecInvalidValidityPeriod: OSStatus = -67854
/// The requester is not valid.
public let errSecInvalidRequestor: OSStatus = -67855
/// The descriptor of the request is not valid.
public let errSecRequestDescriptor: OSStatus = -67856
/// The bundle information is not valid.
public let errSecInvalidBundleInfo: OSStatus = -67857
/// The revocation list index is not valid.
public let errSecInvalidCRLIndex: OSStatus = -67858
/// The fields have no values.
public let errSecNoFieldValues: OSStatus = -67859
/// The field format is not supported.
public let errSecUnsupportedFieldFormat: OSStatus = -67860
/// The index information is not supported.
public let errSecUnsupportedIndexInfo: OSStatus = -67861
/// The locality is not supported.
public let errSecUnsupportedLocality: OSStatus = -67862
/// This number of attributes is not supported.
public let errSecUnsupportedNumAttributes: OSStatus = -67863
/// This number of indexes is not supported.
public let errSecUnsupportedNumIndexes: OSStatus = -67864
/// This number of record types is not supported.
public let errSecUnsupportedNumRecordTypes: OSStatus = -67865
/// A field is named more than once.
public let errSecFieldSpecifiedMultiple: OSStatus = -67866
/// The field formats are not compatible.
public let errSecIncompatibleFieldFormat: OSStatus = -67867
/// The parsing module is not valid.
public let errSecInvalidParsingModule: OSStatus = -67868
/// The database is locked.
public let errSecDatabaseLocked: OSStatus = -67869
/// The data store is open.
public let errSecDatastoreIsOpen: OSStatus = -67870
/// The value is missing.
public let errSecMissingValue: OSStatus = -67871
/// The query limits are not supported.
public let errSecUnsupportedQueryLimits: OSStatus = -67872
/// This number of selection predicates is not supported.
public let errSecUnsupportedNumSelectionPreds: OSStatus = -67873
/// The operator is not supported.
public let errSecUnsupportedOperator: OSStatus = -67874
/// The location of the database is not valid.
public let errSecInvalidDBLocation: OSStatus = -67875
/// The access request is not valid.
public let errSecInvalidAccessRequest: OSStatus = -67876
/// The index information is not valid.
public let errSecInvalidIndexInfo: OSStatus = -67877
/// The new owner is not valid.
public let errSecInvalidNewOwner: OSStatus = -67878
/// The modify mode is not valid.
public let errSecInvalidModifyMode: OSStatus = -67879
/// A required extension is missing.
public let errSecMissingRequiredExtension: OSStatus = -67880
/// The extended key usage is not marked critical.
public let errSecExtendedKeyUsageNotCritical: OSStatus = -67881
/// The time stamp is missing.
public let errSecTimestampMissing: OSStatus = -67882
/// The time stamp is not valid.
public let errSecTimestampInvalid: OSStatus = -67883
/// The time stamp is not trusted.
public let errSecTimestampNotTrusted: OSStatus = -67884
/// The time stamp service is not available.
public let errSecTimestampServiceNotAvailable: OSStatus = -67885
/// The algorithm of the time stamp is not supported.
public let errSecTimestampBadAlg: OSStatus = -67886
/// The time stamp request is not allowed or not supported.
public let errSecTimestampBadRequest: OSStatus = -67887
/// The data for the time stamp has the wrong format.
public let errSecTimestampBadDataFormat: OSStatus = -67888
/// The time stamp authority's time source is not available.
public let errSecTimestampTimeNotAvailable: OSStatus = -67889
/// The time stamp authority does not support the policy.
public let errSecTimestampUnacceptedPolicy: OSStatus = -67890
/// The time stamp authority does not support the extension.
public let errSecTimestampUnacceptedExtension: OSStatus = -67891
/// The requested additional information is not available.
public let errSecTimestampAddInfoNotAvailable: OSStatus = -67892
/// The time stamp request failed because of a system failure.
public let errSecTimestampSystemFailure: OSStatus = -67893
/// The signing time is missing.
public let errSecSigningTimeMissing: OSStatus = -67894
/// The time stamp request was rejected.
public let errSecTimestampRejection: OSStatus = -67895
/// The time stamp request is pending.
public let errSecTimestampWaiting: OSStatus = -67896
/// A revocation warning was issued for the time stamp authority.
public let errSecTimestampRevocationWarning: OSStatus = -67897
/// A revocation notification was issued for the time stamp authority.
public let errSecTimestampRevocationNotification: OSStatus = -67898
/// The certificate's policy is not allowed.
public let errSecCertificatePolicyNotAllowed: OSStatus = -67899
/// The certificate's name is not allowed.
public let errSecCertificateNameNotAllowed: OSStatus = -67900
/// The certificate is valid for longer than allowed.
public let errSecCertificateValidityPeriodTooLong: OSStatus = -67901
/// The certificate is a certificate authority's.
public let errSecCertificateIsCA: OSStatus = -67902
/// The certificate contains an extension twice.
public let errSecCertificateDuplicateExtension: OSStatus = -67903

// MARK: Former spellings

/// Apple's former spelling of `errSecInvalidCRLAuthority`, with the same value.
public let errSecInvaldCRLAuthority: OSStatus = -67827

/// Apple's former spelling of `errSecInvalidTupleCredentials`, with the same value.
public let errSecInvalidTupleCredendtials: OSStatus = -67852

// Results of certificates, revocation and code signatures. No call of this keychain returns them, but apps compare with
// them and show their messages.
// Source: Apple `SecBase.h`.

/// The client identifier is not correct.
public let errSecInsufficientClientID: OSStatus = -67586
/// The device was reset.
public let errSecDeviceReset: OSStatus = -67587
/// The device failed.
public let errSecDeviceFailed: OSStatus = -67588
/// The app could not be added to the access control list.
public let errSecAppleAddAppACLSubject: OSStatus = -67589
/// The public key is incomplete.
public let errSecApplePublicKeyIncomplete: OSStatus = -67590
/// The signatures differ.
public let errSecAppleSignatureMismatch: OSStatus = -67591
/// The start date of the key is not valid.
public let errSecAppleInvalidKeyStartDate: OSStatus = -67592
/// The end date of the key is not valid.
public let errSecAppleInvalidKeyEndDate: OSStatus = -67593
/// The data could not be converted.
public let errSecConversionError: OSStatus = -67594
/// An SSL 2 rollback error occurred.
public let errSecAppleSSLv2Rollback: OSStatus = -67595
/// The quota is exceeded.
public let errSecQuotaExceeded: OSStatus = -67596
/// The file is too big.
public let errSecFileTooBig: OSStatus = -67597
/// The database blob is not valid.
public let errSecInvalidDatabaseBlob: OSStatus = -67598
/// The key blob is not valid.
public let errSecInvalidKeyBlob: OSStatus = -67599
/// The database's data is incompatible.
public let errSecIncompatibleDatabaseBlob: OSStatus = -67600
/// The key's data is incompatible.
public let errSecIncompatibleKeyBlob: OSStatus = -67601
/// The certificate is not for this host.
public let errSecHostNameMismatch: OSStatus = -67602
/// A critical extension is unknown.
public let errSecUnknownCriticalExtensionFlag: OSStatus = -67603
/// The certificate has no basic constraints.
public let errSecNoBasicConstraints: OSStatus = -67604
/// The basic constraints do not make the certificate an authority.
public let errSecNoBasicConstraintsCA: OSStatus = -67605
/// The authority key identifier is not valid.
public let errSecInvalidAuthorityKeyID: OSStatus = -67606
/// The subject key identifier is not valid.
public let errSecInvalidSubjectKeyID: OSStatus = -67607
/// The policy does not allow this usage of the key.
public let errSecInvalidKeyUsageForPolicy: OSStatus = -67608
/// The extended key usage is not valid.
public let errSecInvalidExtendedKeyUsage: OSStatus = -67609
/// The links between identifiers are not valid.
public let errSecInvalidIDLinkage: OSStatus = -67610
/// The chain is longer than an authority in it allows.
public let errSecPathLengthConstraintExceeded: OSStatus = -67611
/// The root or anchor of the chain is not valid.
public let errSecInvalidRoot: OSStatus = -67612
/// The revocation list has expired.
public let errSecCRLExpired: OSStatus = -67613
/// The revocation list is not valid yet.
public let errSecCRLNotValidYet: OSStatus = -67614
/// There is no revocation list.
public let errSecCRLNotFound: OSStatus = -67615
/// The server of the revocation list is down.
public let errSecCRLServerDown: OSStatus = -67616
/// The address of the revocation list is not valid.
public let errSecCRLBadURI: OSStatus = -67617
/// An extension of the certificate is unknown.
public let errSecUnknownCertExtension: OSStatus = -67618
/// An extension of the revocation list is unknown.
public let errSecUnknownCRLExtension: OSStatus = -67619
/// The revocation list is not trusted.
public let errSecCRLNotTrusted: OSStatus = -67620
/// The revocation list does not satisfy the policy.
public let errSecCRLPolicyFailed: OSStatus = -67621
/// The issuing distribution point is not valid.
public let errSecIDPFailure: OSStatus = -67622
/// The certificate is not for this e-mail address.
public let errSecSMIMEEmailAddressesNotFound: OSStatus = -67623
/// The extended key usage does not allow S/MIME.
public let errSecSMIMEBadExtendedKeyUsage: OSStatus = -67624
/// The key usage does not allow S/MIME.
public let errSecSMIMEBadKeyUsage: OSStatus = -67625
/// The key usage for S/MIME is not marked critical.
public let errSecSMIMEKeyUsageNotCritical: OSStatus = -67626
/// The certificate has no e-mail address.
public let errSecSMIMENoEmailAddress: OSStatus = -67627
/// The subject alternative name for S/MIME is not marked critical.
public let errSecSMIMESubjAltNameNotCritical: OSStatus = -67628
/// The extended key usage does not allow SSL.
public let errSecSSLBadExtendedKeyUsage: OSStatus = -67629
/// The response of the OCSP server is not valid.
public let errSecOCSPBadResponse: OSStatus = -67630
/// The request to the OCSP server is not valid.
public let errSecOCSPBadRequest: OSStatus = -67631
/// The OCSP service is not available.
public let errSecOCSPUnavailable: OSStatus = -67632
/// The OCSP server does not know the certificate.
public let errSecOCSPStatusUnrecognized: OSStatus = -67633
/// The data ends here.
public let errSecEndOfData: OSStatus = -67634
/// The revocation status could not be determined for the complete chain.
public let errSecIncompleteCertRevocationCheck: OSStatus = -67635
/// The network failed.
public let errSecNetworkFailure: OSStatus = -67636
/// The response of the OCSP server does not lead to a trusted anchor.
public let errSecOCSPNotTrustedToAnchor: OSStatus = -67637
/// The record was modified.
public let errSecRecordModified: OSStatus = -67638
/// The signature of the OCSP response is not valid.
public let errSecOCSPSignatureError: OSStatus = -67639
/// The OCSP response has no signer.
public let errSecOCSPNoSigner: OSStatus = -67640
/// The OCSP server reports a malformed request.
public let errSecOCSPResponderMalformedReq: OSStatus = -67641
/// The OCSP server failed.
public let errSecOCSPResponderInternalError: OSStatus = -67642
/// The OCSP server is busy.
public let errSecOCSPResponderTryLater: OSStatus = -67643
/// The OCSP server requires signed requests.
public let errSecOCSPResponderSignatureRequired: OSStatus = -67644
/// The OCSP server refuses the request.
public let errSecOCSPResponderUnauthorized: OSStatus = -67645
/// The nonce of the OCSP response does not match the request.
public let errSecOCSPResponseNonceMismatch: OSStatus = -67646
/// The code signature's chain has the wrong length.
public let errSecCodeSigningBadCertChainLength: OSStatus = -67647
/// The code signature's chain has no basic constraints.
public let errSecCodeSigningNoBasicConstraints: OSStatus = -67648
/// The code signature's chain has an incorrect path length constraint.
public let errSecCodeSigningBadPathLengthConstraint: OSStatus = -67649
/// The certificate is not for code signing.
public let errSecCodeSigningNoExtendedKeyUsage: OSStatus = -67650
/// The code is signed for development only.
public let errSecCodeSigningDevelopment: OSStatus = -67651
/// The resource signature's chain has the wrong length.
public let errSecResourceSignBadCertChainLength: OSStatus = -67652
/// The certificate is not for resource signing.
public let errSecResourceSignBadExtKeyUsage: OSStatus = -67653
/// A trust setting denies this.
public let errSecTrustSettingDeny: OSStatus = -67654
/// The name of the subject is not valid.
public let errSecInvalidSubjectName: OSStatus = -67655
/// A statement of the qualified certificate is unknown.
public let errSecUnknownQualifiedCertStatement: OSStatus = -67656
/// The MobileMe request is queued.
public let errSecMobileMeRequestQueued: OSStatus = -67657
/// The MobileMe request was redirected.
public let errSecMobileMeRequestRedirected: OSStatus = -67658
/// The MobileMe server failed.
public let errSecMobileMeServerError: OSStatus = -67659
/// The MobileMe server is not available.
public let errSecMobileMeServerNotAvailable: OSStatus = -67660
/// The item already exists on the MobileMe server.
public let errSecMobileMeServerAlreadyExists: OSStatus = -67661
/// A service of the MobileMe server failed.
public let errSecMobileMeServerServiceErr: OSStatus = -67662
/// A MobileMe request is already pending.
public let errSecMobileMeRequestAlreadyPending: OSStatus = -67663
/// No MobileMe request is pending.
public let errSecMobileMeNoRequestPending: OSStatus = -67664
/// The MobileMe signing request could not be verified.
public let errSecMobileMeCSRVerifyFailure: OSStatus = -67665
/// MobileMe's consistency check failed.
public let errSecMobileMeFailedConsistencyCheck: OSStatus = -67666
