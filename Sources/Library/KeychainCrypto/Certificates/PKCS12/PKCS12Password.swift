/// A password in its owner's memory, for OpenSSL's calls.
struct PKCS12Password {
  /// The bytes, or `nil` if there is no password. An empty password is not `nil`.
  let text: UnsafePointer<CChar>?
  let count: Int32
  /// The error for a part that cannot be decrypted. If the authentication code matched, the password is not the cause.
  let failure: CertificateError

  private init(_ text: UnsafePointer<CChar>?, _ count: Int32, _ failure: CertificateError = .undecryptable) {
    (self.text, self.count, self.failure) = (text, count, failure)
  }

  /// Creates the password for decrypting a file.
  ///
  /// - Parameters:
  ///   - bytes: The password as it was typed. If it is empty and does not match, the file is also tried without a
  ///     password.
  ///   - file: The file.
  init(_ bytes: UnsafeRawBufferPointer, matching file: borrowing PKCS12Handle) throws(CertificateError) {
    guard let count = Int32(exactly: bytes.count) else { throw .wrongPassword }
    let text = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) ?? Self.empty
    guard file.hasMAC else {
      self.init(text, count, .wrongPassword)
      return
    }
    let typedPassword = PKCS12Password(text, count)
    if file.macMatches(typedPassword) {
      self = typedPassword
    } else if count == 0, file.macMatches(PKCS12Password(nil, 0)) {
      self = PKCS12Password(nil, 0)
    } else {
      throw .wrongPassword
    }
  }

  private static let emptyText: StaticString = ""
  private static var empty: UnsafePointer<CChar> {
    UnsafeRawPointer(emptyText.utf8Start).assumingMemoryBound(to: CChar.self)
  }
}

extension CertificateError {
  static let wrongPassword = CertificateError(.wrongPassword, "its authentication code does not match this password")
  static let undecryptable = CertificateError(
    .unsupported, "the password is right, but OpenSSL cannot decrypt a part of the file")
}
