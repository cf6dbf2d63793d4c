package import Basics

/// The decrypted entry of an account in Proton Authenticator, a protocol buffer message.
///
/// Source: protonpass/proton-pass-common, `proton-authenticator/proto/authenticator_entry.proto`.
package enum AuthenticatorEntry {
  /// Returns the `otpauth` address of an entry, copied only into memory that is wiped.
  ///
  /// An entry for Steam has only a secret. Its address has the type `steam`, as in other authenticators.
  ///
  /// - Returns: `nil` if the bytes are not an entry.
  package static func address(of message: UnsafeRawBufferPointer) -> SensitiveBytes? {
    do throws(FormatError) {
      let fields = try fields(of: ByteCursor(message, format: .itemBlob))
      guard let content = try fields[2]?.contents("the content") else { return nil }
      let contents = try Self.fields(of: content)
      if let timed = try contents[1]?.contents("the account") {
        return try Self.fields(of: timed)[1].map { (uri) throws(FormatError) in
          SensitiveBytes(copying: try uri.contents("the address").remainingBytes)
        }
      }
      guard let steam = try contents[2]?.contents("the account"),
        let secret = try Self.fields(of: steam)[1]?.contents("the secret")
      else { return nil }
      var address = SensitiveBuffer()
      address.append("otpauth://steam/Steam?issuer=Steam&secret=")
      address.append(secret.remainingBytes)
      return address.bytes()
    } catch {
      return nil
    }
  }

  /// Returns the fields by their numbers. If a field occurs twice, the last one counts.
  private static func fields(of message: ByteCursor) throws(FormatError) -> [UInt64: ProtobufReader.Field] {
    var reader = ProtobufReader(message)
    var fields: [UInt64: ProtobufReader.Field] = [:]
    while let field = try reader.next() { fields[field.number] = field }
    return fields
  }
}
