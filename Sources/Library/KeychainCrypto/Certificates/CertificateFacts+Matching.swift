package import Basics
import KeychainFormats

/// What searches for certificates compare beside the stored attributes.
extension CertificateFacts {
  /// The DER of a Name as `subject` and `issuer` hold it; `nil` for bytes that are none.
  package static func normalizedName(_ der: [UInt8]) -> [UInt8]? {
    try? der.withRawBytes { (bytes) throws(MaterialError) in try DistinguishedName(bytes).normalizedContents }
  }

  /// The DER of the normalized subject.
  package var subjectSequence: [UInt8] { ASN1Encoding.element(.sequence, subject) }
  /// The DER of the normalized issuer.
  package var issuerSequence: [UInt8] { ASN1Encoding.element(.sequence, issuer) }

  /// Whether a moment lies between the two of the certificate's validity, both included.
  ///
  /// Source: RFC 5280, 4.1.2.5; Apple `SecItemServer.c` (`_FilterWithDate`).
  /// - Returns: Also false where the validity cannot be read.
  package func isValid(at date: KeychainDate) -> Bool {
    guard let period = try? der.withRawBytes({ (bytes) throws(MaterialError) in try Self.validity(bytes) }) else {
      return false
    }
    return period.start < period.end && period.start <= date && date <= period.end
  }

  private static func validity(
    _ certificate: UnsafeRawBufferPointer
  ) throws(MaterialError) -> (start: KeychainDate, end: KeychainDate) {
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

  private static func time(_ cursor: inout ASN1Cursor) throws(MaterialError) -> KeychainDate {
    let element = try cursor.next("a time")
    let isWithoutSeconds = element.tag == .utcTime && element.contents.count == "YYMMDDhhmmZ".utf8.count
    let date =
      isWithoutSeconds
      ? (try? DERPropertyList.decode(withSeconds(element.contents)))?.dateValue
      : (try? DERPropertyList.decode(element.whole))?.dateValue
    guard let date else { throw MaterialError(.malformed, "a date of its validity is not valid") }
    return date
  }

  /// A UTCTime may lack its seconds in BER (ITU-T X.680, 47.3), and so in certificates; Apple reads such ones.
  private static func withSeconds(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    ASN1Encoding.element(.utcTime, Array(text.dropLast()) + Array("00".utf8) + Array(text.suffix(1)))
  }
}
