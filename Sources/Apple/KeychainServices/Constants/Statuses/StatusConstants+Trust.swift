// Results of certificates, revocation and code signatures, which no call of this keychain gives: apps compare with them, and tell a person what they mean.
// Source: Apple `SecBase.h`.

/// The identifier of the client is not enough.
public let errSecInsufficientClientID: OSStatus = -67586
/// The device was reset.
public let errSecDeviceReset: OSStatus = -67587
/// The device failed.
public let errSecDeviceFailed: OSStatus = -67588
/// The app could not be added to the list of access rights.
public let errSecAppleAddAppACLSubject: OSStatus = -67589
/// The public key has parts missing.
public let errSecApplePublicKeyIncomplete: OSStatus = -67590
/// The signature is another one.
public let errSecAppleSignatureMismatch: OSStatus = -67591
/// The start date of the key is not valid.
public let errSecAppleInvalidKeyStartDate: OSStatus = -67592
/// The end date of the key is not valid.
public let errSecAppleInvalidKeyEndDate: OSStatus = -67593
/// The data could not be converted.
public let errSecConversionError: OSStatus = -67594
/// The connection was pushed back to SSL 2.
public let errSecAppleSSLv2Rollback: OSStatus = -67595
/// The quota is used up.
public let errSecQuotaExceeded: OSStatus = -67596
/// The file is too big.
public let errSecFileTooBig: OSStatus = -67597
/// The database blob is not valid.
public let errSecInvalidDatabaseBlob: OSStatus = -67598
/// The key blob is not valid.
public let errSecInvalidKeyBlob: OSStatus = -67599
/// The database's data does not fit this version.
public let errSecIncompatibleDatabaseBlob: OSStatus = -67600
/// The key's data does not fit this version.
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
/// The server of the revocation list does not answer.
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
/// The distribution point of the issuer is not valid.
public let errSecIDPFailure: OSStatus = -67622
/// The certificate is not for this e-mail address.
public let errSecSMIMEEmailAddressesNotFound: OSStatus = -67623
/// The extended usage of the key does not allow S/MIME.
public let errSecSMIMEBadExtendedKeyUsage: OSStatus = -67624
/// The usage of the key does not allow S/MIME.
public let errSecSMIMEBadKeyUsage: OSStatus = -67625
/// The usage of the key is not marked critical, as S/MIME wants it.
public let errSecSMIMEKeyUsageNotCritical: OSStatus = -67626
/// The certificate has no e-mail address.
public let errSecSMIMENoEmailAddress: OSStatus = -67627
/// The alternative name of the subject is not marked critical, as S/MIME wants it.
public let errSecSMIMESubjAltNameNotCritical: OSStatus = -67628
/// The extended usage of the key does not allow SSL.
public let errSecSSLBadExtendedKeyUsage: OSStatus = -67629
/// The answer of the OCSP server is not valid.
public let errSecOCSPBadResponse: OSStatus = -67630
/// The request to the OCSP server is not valid.
public let errSecOCSPBadRequest: OSStatus = -67631
/// The OCSP server cannot be reached.
public let errSecOCSPUnavailable: OSStatus = -67632
/// The OCSP server does not know the certificate.
public let errSecOCSPStatusUnrecognized: OSStatus = -67633
/// The data ends here.
public let errSecEndOfData: OSStatus = -67634
/// Whether a certificate was revoked could not be found out for the whole chain.
public let errSecIncompleteCertRevocationCheck: OSStatus = -67635
/// The network failed.
public let errSecNetworkFailure: OSStatus = -67636
/// The answer of the OCSP server leads to no trusted anchor.
public let errSecOCSPNotTrustedToAnchor: OSStatus = -67637
/// The record was changed in the meantime.
public let errSecRecordModified: OSStatus = -67638
/// The signature of the OCSP answer is not valid.
public let errSecOCSPSignatureError: OSStatus = -67639
/// Nobody signed the OCSP answer.
public let errSecOCSPNoSigner: OSStatus = -67640
/// The OCSP server calls the request malformed.
public let errSecOCSPResponderMalformedReq: OSStatus = -67641
/// The OCSP server failed.
public let errSecOCSPResponderInternalError: OSStatus = -67642
/// The OCSP server is busy.
public let errSecOCSPResponderTryLater: OSStatus = -67643
/// The OCSP server wants signed requests.
public let errSecOCSPResponderSignatureRequired: OSStatus = -67644
/// The OCSP server refuses the request.
public let errSecOCSPResponderUnauthorized: OSStatus = -67645
/// The OCSP answer is to another request.
public let errSecOCSPResponseNonceMismatch: OSStatus = -67646
/// The chain of the code signature has a wrong length.
public let errSecCodeSigningBadCertChainLength: OSStatus = -67647
/// The code signature's chain has no basic constraints.
public let errSecCodeSigningNoBasicConstraints: OSStatus = -67648
/// The code signature's chain is longer than allowed.
public let errSecCodeSigningBadPathLengthConstraint: OSStatus = -67649
/// The certificate is not for the signing of code.
public let errSecCodeSigningNoExtendedKeyUsage: OSStatus = -67650
/// The code is signed for development only.
public let errSecCodeSigningDevelopment: OSStatus = -67651
/// The chain of the resource signature has a wrong length.
public let errSecResourceSignBadCertChainLength: OSStatus = -67652
/// The certificate is not for the signing of resources.
public let errSecResourceSignBadExtKeyUsage: OSStatus = -67653
/// A trust setting denies this.
public let errSecTrustSettingDeny: OSStatus = -67654
/// The name of the subject is not valid.
public let errSecInvalidSubjectName: OSStatus = -67655
/// A statement of the qualified certificate is unknown.
public let errSecUnknownQualifiedCertStatement: OSStatus = -67656
/// The MobileMe request waits in the queue.
public let errSecMobileMeRequestQueued: OSStatus = -67657
/// The MobileMe request was redirected.
public let errSecMobileMeRequestRedirected: OSStatus = -67658
/// The MobileMe server failed.
public let errSecMobileMeServerError: OSStatus = -67659
/// The MobileMe server cannot be reached.
public let errSecMobileMeServerNotAvailable: OSStatus = -67660
/// The MobileMe server has the item already.
public let errSecMobileMeServerAlreadyExists: OSStatus = -67661
/// A service of the MobileMe server failed.
public let errSecMobileMeServerServiceErr: OSStatus = -67662
/// A MobileMe request is under way already.
public let errSecMobileMeRequestAlreadyPending: OSStatus = -67663
/// No MobileMe request is under way.
public let errSecMobileMeNoRequestPending: OSStatus = -67664
/// The MobileMe signing request does not verify.
public let errSecMobileMeCSRVerifyFailure: OSStatus = -67665
/// MobileMe's data do not agree.
public let errSecMobileMeFailedConsistencyCheck: OSStatus = -67666
