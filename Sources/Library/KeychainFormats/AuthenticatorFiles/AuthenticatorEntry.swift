package import Basics

/// The decrypted entry of an account in Proton Authenticator: a protocol buffer message with these field numbers.
///
/// ```
/// entry    2: content
/// content  1: time-based account, or 2: Steam account
/// account  1: address (time-based), or secret (Steam)
/// ```
///
/// Source: protonpass/proton-pass-common, `proton-authenticator/proto/authenticator_entry.proto`.
package enum AuthenticatorEntry {
  /// Returns the `otpauth` address of an entry, copied only into memory that is wiped.
  ///
  /// An entry for Steam has only a secret. Its address has the type `steam`, as in other authenticators.
  ///
  /// - Returns: The address, or `nil` if the bytes are not an entry with an account.
  package static func address(of message: UnsafeRawBufferPointer) -> SensitiveBytes? {
    do throws(FormatError) {
      guard let content = try fields(of: ByteCursor(message, format: .itemBlob))[2]?.contents("the content") else {
        return nil
      }
      let accounts = try fields(of: content)
      if let account = try accounts[1]?.contents("the account") {
        return try fields(of: account)[1].map { (address) throws(FormatError) in
          SensitiveBytes(copying: try address.contents("the address").remainingBytes)
        }
      }
      guard let account = try accounts[2]?.contents("the account"),
        let secret = try fields(of: account)[1]?.contents("the secret")
      else { return nil }
      return steamAddress(secret: secret.remainingBytes)
    } catch {
      return nil
    }
  }

  private static func steamAddress(secret: UnsafeRawBufferPointer) -> SensitiveBytes {
    var address = SensitiveBuffer()
    address.append("otpauth://steam/Steam?issuer=Steam&secret=")
    address.append(secret)
    return address.bytes()
  }

  /// Returns the fields by their numbers. If a field occurs twice, the last one counts.
  private static func fields(of message: ByteCursor) throws(FormatError) -> [UInt64: ProtobufReader.Field] {
    var reader = ProtobufReader(message)
    var fields: [UInt64: ProtobufReader.Field] = [:]
    while let field = try reader.next() { fields[field.number] = field }
    return fields
  }
}
