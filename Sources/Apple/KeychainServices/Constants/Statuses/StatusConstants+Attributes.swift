// Results of operations with keys and their attributes, which no call of this keychain gives: apps compare with them, and tell a person what they mean.
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
/// An operation in steps is under way.
public let errSecStagedOperationInProgress: OSStatus = -67806
/// The operation in steps was not begun.
public let errSecStagedOperationNotStarted: OSStatus = -67807
/// The size of the result is unknown.
public let errSecQuerySizeUnknown: OSStatus = -67809
/// The block size is another one.
public let errSecBlockSizeMismatch: OSStatus = -67810
/// The public key contradicts itself.
public let errSecPublicKeyInconsistent: OSStatus = -67811
/// The device could not be verified.
public let errSecDeviceVerifyFailed: OSStatus = -67812
/// The login name is not valid.
public let errSecInvalidLoginName: OSStatus = -67813
