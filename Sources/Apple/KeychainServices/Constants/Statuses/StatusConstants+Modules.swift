// Results of modules, databases and keys, which no call of this keychain gives: apps compare with them, and tell a person what they mean.
// Source: Apple `SecBase.h`.

/// The call came before its module was set up.
public let errSecNotInitialized: OSStatus = -67667
/// The handle is for another kind of service.
public let errSecInvalidHandleUsage: OSStatus = -67668
/// The caller is not in the list of those that may call.
public let errSecPVCReferentNotFound: OSStatus = -67669
/// The address of a function lies outside of its verified module.
public let errSecFunctionIntegrityFail: OSStatus = -67670
/// Something went wrong inside.
public let errSecInternalError: OSStatus = -67671
/// The memory could not be used.
public let errSecMemoryError: OSStatus = -67672
/// The data is not valid.
public let errSecInvalidData: OSStatus = -67673
/// The directory of modules failed.
public let errSecMDSError: OSStatus = -67674
/// The pointer is not valid.
public let errSecInvalidPointer: OSStatus = -67675
/// The module's check of itself failed.
public let errSecSelfCheckFailed: OSStatus = -67676
/// The function failed.
public let errSecFunctionFailed: OSStatus = -67677
/// The manifest of the module does not verify.
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
/// The revocation list is signed already.
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
/// The access rights could not be deleted.
public let errSecACLDeleteFailed: OSStatus = -67696
/// The access rights could not be replaced.
public let errSecACLReplaceFailed: OSStatus = -67697
/// The access rights could not be added.
public let errSecACLAddFailed: OSStatus = -67698
/// The access rights could not be changed.
public let errSecACLChangeFailed: OSStatus = -67699
/// The access credentials are not valid.
public let errSecInvalidAccessCredentials: OSStatus = -67700
/// The record is not valid.
public let errSecInvalidRecord: OSStatus = -67701
/// The list of access rights is not valid.
public let errSecInvalidACL: OSStatus = -67702
/// The sample value is not valid.
public let errSecInvalidSampleValue: OSStatus = -67703
/// The versions do not fit each other.
public let errSecIncompatibleVersion: OSStatus = -67704
/// The privilege was not granted.
public let errSecPrivilegeNotGranted: OSStatus = -67705
/// The scope is not valid.
public let errSecInvalidScope: OSStatus = -67706
/// The checking of callers is set up already.
public let errSecPVCAlreadyConfigured: OSStatus = -67707
/// The checking of callers is not valid.
public let errSecInvalidPVC: OSStatus = -67708
/// The manager of modules could not be loaded.
public let errSecEMMLoadFailed: OSStatus = -67709
/// The manager of modules could not be unloaded.
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
/// The sub service identifier is not valid.
public let errSecInvalidSubServiceID: OSStatus = -67719
/// The attribute is not in the context.
public let errSecAttributeNotInContext: OSStatus = -67720
/// The manager of modules could not be set up.
public let errSecModuleManagerInitializeFailed: OSStatus = -67721
/// The module manager was not found.
public let errSecModuleManagerNotFound: OSStatus = -67722
/// The event notification callback was not found.
public let errSecEventNotificationCallbackNotFound: OSStatus = -67723
/// The input has a wrong length.
public let errSecInputLengthError: OSStatus = -67724
/// The output has a wrong length.
public let errSecOutputLengthError: OSStatus = -67725
/// The privilege is not supported.
public let errSecPrivilegeNotSupported: OSStatus = -67726
/// The device reports an error.
public let errSecDeviceError: OSStatus = -67727
/// The handle is in use.
public let errSecAttachHandleBusy: OSStatus = -67728
/// Nobody is logged in.
public let errSecNotLoggedIn: OSStatus = -67729
/// The algorithm is another one.
public let errSecAlgorithmMismatch: OSStatus = -67730
/// The key is not for this usage.
public let errSecKeyUsageIncorrect: OSStatus = -67731
/// The type of the key's data is wrong.
public let errSecKeyBlobTypeIncorrect: OSStatus = -67732
/// The header of the key contradicts itself.
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
/// A list of several buffers is not supported.
public let errSecUnsupportedVectorOfBuffers: OSStatus = -67743
/// The input vector is not valid.
public let errSecInvalidInputVector: OSStatus = -67744
/// The output vector is not valid.
public let errSecInvalidOutputVector: OSStatus = -67745
/// The context is not valid.
public let errSecInvalidContext: OSStatus = -67746
/// The algorithm is not valid.
public let errSecInvalidAlgorithm: OSStatus = -67747
