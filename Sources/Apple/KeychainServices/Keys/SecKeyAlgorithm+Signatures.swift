// The algorithms of signatures. Source of names and values: Apple `SecKey.h`, `SecKeyAdaptors.m`.

extension SecKeyAlgorithm {
  // MARK: RSA signatures

  /// RSA without padding; shorter input gets zeros before it.
  public static let rsaSignatureRaw = SecKeyAlgorithm("algid:sign:RSA:raw")
  /// PKCS#1 v1.5 of any bytes, without the name of a digest.
  public static let rsaSignatureDigestPKCS1v15Raw = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15")
  /// PKCS#1 v1.5 of a digest of 20 bytes, SHA-1.
  public static let rsaSignatureDigestPKCS1v15SHA1 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA1")
  /// PKCS#1 v1.5 of a digest of 28 bytes, SHA-224.
  public static let rsaSignatureDigestPKCS1v15SHA224 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA224")
  /// PKCS#1 v1.5 of a digest of 32 bytes, SHA-256.
  public static let rsaSignatureDigestPKCS1v15SHA256 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA256")
  /// PKCS#1 v1.5 of a digest of 48 bytes, SHA-384.
  public static let rsaSignatureDigestPKCS1v15SHA384 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA384")
  /// PKCS#1 v1.5 of a digest of 64 bytes, SHA-512.
  public static let rsaSignatureDigestPKCS1v15SHA512 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA512")
  /// PKCS#1 v1.5 of a message, with SHA-1.
  public static let rsaSignatureMessagePKCS1v15SHA1 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA1")
  /// PKCS#1 v1.5 of a message, with SHA-224.
  public static let rsaSignatureMessagePKCS1v15SHA224 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA224")
  /// PKCS#1 v1.5 of a message, with SHA-256.
  public static let rsaSignatureMessagePKCS1v15SHA256 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA256")
  /// PKCS#1 v1.5 of a message, with SHA-384.
  public static let rsaSignatureMessagePKCS1v15SHA384 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA384")
  /// PKCS#1 v1.5 of a message, with SHA-512.
  public static let rsaSignatureMessagePKCS1v15SHA512 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA512")
  /// PSS of a digest of 20 bytes, SHA-1, with a salt as long.
  public static let rsaSignatureDigestPSSSHA1 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA1:SHA1:20")
  /// PSS of a digest of 28 bytes, SHA-224, with a salt as long.
  public static let rsaSignatureDigestPSSSHA224 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA224:SHA224:28")
  /// PSS of a digest of 32 bytes, SHA-256, with a salt as long.
  public static let rsaSignatureDigestPSSSHA256 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA256:SHA256:32")
  /// PSS of a digest of 48 bytes, SHA-384, with a salt as long.
  public static let rsaSignatureDigestPSSSHA384 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA384:SHA384:48")
  /// PSS of a digest of 64 bytes, SHA-512, with a salt as long.
  public static let rsaSignatureDigestPSSSHA512 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA512:SHA512:64")
  /// PSS of a message, with SHA-1 and a salt of 20 bytes.
  public static let rsaSignatureMessagePSSSHA1 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA1:SHA1:20")
  /// PSS of a message, with SHA-224 and a salt of 28 bytes.
  public static let rsaSignatureMessagePSSSHA224 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA224:SHA224:28")
  /// PSS of a message, with SHA-256 and a salt of 32 bytes.
  public static let rsaSignatureMessagePSSSHA256 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA256:SHA256:32")
  /// PSS of a message, with SHA-384 and a salt of 48 bytes.
  public static let rsaSignatureMessagePSSSHA384 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA384:SHA384:48")
  /// PSS of a message, with SHA-512 and a salt of 64 bytes.
  public static let rsaSignatureMessagePSSSHA512 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA512:SHA512:64")

  // MARK: ECDSA signatures

  /// Both numbers one after the other (RFC 4754), of a digest of any length.
  public static let ecdsaSignatureRFC4754 = SecKeyAlgorithm("algid:sign:ECDSA:RFC4754")
  /// Both numbers in DER (X9.62), of a digest of any length.
  public static let ecdsaSignatureDigestX962 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962")
  /// Both numbers one after the other, of a digest of any length.
  public static let ecdsaSignatureDigestRFC4754 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754")
  /// In DER, of a digest of 20 bytes, SHA-1.
  public static let ecdsaSignatureDigestX962SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA1")
  /// In DER, of a digest of 28 bytes, SHA-224.
  public static let ecdsaSignatureDigestX962SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA224")
  /// In DER, of a digest of 32 bytes, SHA-256.
  public static let ecdsaSignatureDigestX962SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA256")
  /// In DER, of a digest of 48 bytes, SHA-384.
  public static let ecdsaSignatureDigestX962SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA384")
  /// In DER, of a digest of 64 bytes, SHA-512.
  public static let ecdsaSignatureDigestX962SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA512")
  /// In DER, of a message, with SHA-1.
  public static let ecdsaSignatureMessageX962SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA1")
  /// In DER, of a message, with SHA-224.
  public static let ecdsaSignatureMessageX962SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA224")
  /// In DER, of a message, with SHA-256.
  public static let ecdsaSignatureMessageX962SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA256")
  /// In DER, of a message, with SHA-384.
  public static let ecdsaSignatureMessageX962SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA384")
  /// In DER, of a message, with SHA-512.
  public static let ecdsaSignatureMessageX962SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA512")
  /// One after the other, of a digest of 20 bytes, SHA-1.
  public static let ecdsaSignatureDigestRFC4754SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA1")
  /// One after the other, of a digest of 28 bytes, SHA-224.
  public static let ecdsaSignatureDigestRFC4754SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA224")
  /// One after the other, of a digest of 32 bytes, SHA-256.
  public static let ecdsaSignatureDigestRFC4754SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA256")
  /// One after the other, of a digest of 48 bytes, SHA-384.
  public static let ecdsaSignatureDigestRFC4754SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA384")
  /// One after the other, of a digest of 64 bytes, SHA-512.
  public static let ecdsaSignatureDigestRFC4754SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA512")
  /// One after the other, of a message, with SHA-1.
  public static let ecdsaSignatureMessageRFC4754SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA1")
  /// One after the other, of a message, with SHA-224.
  public static let ecdsaSignatureMessageRFC4754SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA224")
  /// One after the other, of a message, with SHA-256.
  public static let ecdsaSignatureMessageRFC4754SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA256")
  /// One after the other, of a message, with SHA-384.
  public static let ecdsaSignatureMessageRFC4754SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA384")
  /// One after the other, of a message, with SHA-512.
  public static let ecdsaSignatureMessageRFC4754SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA512")
}
