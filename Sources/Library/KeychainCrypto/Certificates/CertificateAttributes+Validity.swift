package import Basics
import KeychainFormats

extension CertificateAttributes {
  /// Returns whether a date is within the certificate's validity, both ends included.
  ///
  /// Source: RFC 5280, 4.1.2.5; Apple `SecItemServer.c` (`_FilterWithDate`).
  /// - Returns: `false` also if the validity cannot be read.
  package func isValid(at date: KeychainDate) -> Bool {
    guard let period = try? der.withRawBytes({ (bytes) throws(CertificateError) in try Self.validity(bytes) }) else {
      return false
    }
    return period.start < period.end && period.start <= date && date <= period.end
  }

  private static func validity(
    _ certificate: UnsafeRawBufferPointer
  ) throws(CertificateError) -> (start: KeychainDate, end: KeychainDate) {
    var outer = ASN1Cursor(certificate)
    var parts = try outer.next(.sequence, "the certificate").cursor
    var fields = try parts.next(.sequence, "the certificate's fields").cursor
    _ = try fields.nextIfPresent(.explicit(0), "the version")
    _ = try fields.next(.integer, "the serial number")
    _ = try fields.next(.sequence, "the algorithm")
    _ = try fields.next(.sequence, "the issuer")
    var period = try fields.next(.sequence, "the validity").cursor
    return (try time(&period), try time(&period))
  }

  private static func time(_ cursor: inout ASN1Cursor) throws(CertificateError) -> KeychainDate {
    let element = try cursor.next("a time")
    let lacksSeconds = element.tag == .utcTime && element.contents.count == "YYMMDDhhmmZ".utf8.count
    let date =
      lacksSeconds
      ? (try? DERPropertyList.decode(withSeconds(element.contents)))?.dateValue
      : (try? DERPropertyList.decode(element.encoding))?.dateValue
    guard let date else { throw CertificateError(.malformed, "one of its validity dates is not a valid date") }
    return date
  }

  /// Adds seconds to a UTCTime. BER allows times without seconds (ITU-T X.680, 47.3), some certificates have them, and
  /// Apple accepts them.
  private static func withSeconds(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    ASN1Encoding.element(.utcTime, Array(text.dropLast()) + Array("00".utf8) + Array(text.suffix(1)))
  }
}
