// Results of trust policies, data stores and time stamps, which no call of this keychain gives: apps compare with them, and tell a person what they mean.
// Source: Apple `SecBase.h`.

/// Somebody is logged in already.
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
/// The credentials are not enough.
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
/// The policy of when to stop is not valid.
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
/// The basic lists of access rights are not valid.
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
/// The formats of the fields do not fit each other.
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
/// This number of conditions is not supported.
public let errSecUnsupportedNumSelectionPreds: OSStatus = -67873
/// The operator is not supported.
public let errSecUnsupportedOperator: OSStatus = -67874
/// The place of the database is not valid.
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
/// The extended usage of the key is not marked critical.
public let errSecExtendedKeyUsageNotCritical: OSStatus = -67881
/// The time stamp is missing.
public let errSecTimestampMissing: OSStatus = -67882
/// The time stamp is not valid.
public let errSecTimestampInvalid: OSStatus = -67883
/// The time stamp is not trusted.
public let errSecTimestampNotTrusted: OSStatus = -67884
/// The service for time stamps cannot be reached.
public let errSecTimestampServiceNotAvailable: OSStatus = -67885
/// The algorithm of the time stamp is not supported.
public let errSecTimestampBadAlg: OSStatus = -67886
/// The request for a time stamp is not allowed or not supported.
public let errSecTimestampBadRequest: OSStatus = -67887
/// The data for the time stamp has a wrong form.
public let errSecTimestampBadDataFormat: OSStatus = -67888
/// The authority for time stamps has no time.
public let errSecTimestampTimeNotAvailable: OSStatus = -67889
/// The authority for time stamps does not support the policy.
public let errSecTimestampUnacceptedPolicy: OSStatus = -67890
/// The authority for time stamps does not support the extension.
public let errSecTimestampUnacceptedExtension: OSStatus = -67891
/// The authority for time stamps does not have what was asked for.
public let errSecTimestampAddInfoNotAvailable: OSStatus = -67892
/// The authority for time stamps failed.
public let errSecTimestampSystemFailure: OSStatus = -67893
/// The time of signing is missing.
public let errSecSigningTimeMissing: OSStatus = -67894
/// The request for a time stamp was rejected.
public let errSecTimestampRejection: OSStatus = -67895
/// The request for a time stamp waits.
public let errSecTimestampWaiting: OSStatus = -67896
/// The authority for time stamps is about to be revoked.
public let errSecTimestampRevocationWarning: OSStatus = -67897
/// The authority for time stamps was revoked.
public let errSecTimestampRevocationNotification: OSStatus = -67898
/// The certificate's policy is not allowed.
public let errSecCertificatePolicyNotAllowed: OSStatus = -67899
/// The certificate's name is not allowed.
public let errSecCertificateNameNotAllowed: OSStatus = -67900
/// The certificate is valid for longer than allowed.
public let errSecCertificateValidityPeriodTooLong: OSStatus = -67901
/// The certificate is an authority's, and has to be none.
public let errSecCertificateIsCA: OSStatus = -67902
/// The certificate has an extension twice.
public let errSecCertificateDuplicateExtension: OSStatus = -67903

// MARK: Former spellings

/// Apple's former spelling of `errSecInvalidCRLAuthority`, with the same value.
public let errSecInvaldCRLAuthority: OSStatus = -67827

/// Apple's former spelling of `errSecInvalidTupleCredentials`, with the same value.
public let errSecInvalidTupleCredendtials: OSStatus = -67852
