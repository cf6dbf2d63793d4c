import KeyhaulKit

/// Certificates and keys as a user hands them over.
enum ItemMaterial {
  /// - Throws: `.refused` or `.damaged` for what is not a certificate, and for a chain: an item holds one.
  static func certificate(_ flags: ItemSecretFlags, in session: Session) throws(CommandFailure) -> CertificateFacts {
    let file = try file(flags, of: "the certificate", isPublic: true, in: session)
    do throws(MaterialError) {
      let all = try CertificateFacts.all(in: file)
      guard all.count == 1 else {
        throw MaterialError(.unexpectedKind, "it contains \(all.count) certificates, but an item stores only one")
      }
      return all[0]
    } catch {
      throw CommandFailure(error, doing: "cannot read the certificate")
    }
  }

  /// - Throws: `.refused` or `.damaged` for what is no key in clear.
  static func key(_ flags: ItemSecretFlags, in session: Session) throws(CommandFailure) -> KeyMaterial {
    let file = try file(flags, of: "the key", isPublic: false, in: session)
    do throws(MaterialError) {
      return try KeyMaterial(parsing: file)
    } catch {
      throw CommandFailure(error, doing: "cannot read the key")
    }
  }

  /// Nobody types a certificate or a key at a prompt.
  private static func file(
    _ flags: ItemSecretFlags, of subject: String, isPublic: Bool, in session: Session
  ) throws(CommandFailure) -> SensitiveBytes {
    guard flags.isGiven else {
      throw .usage("\(subject) is not given", why: "it is PEM or DER, which cannot be typed", try: "--secret-file PATH")
    }
    return try session.itemSecret(flags, of: subject, isPublic: isPublic)
  }
}
