import Basics
package import KeychainFormats

/// The device's record of a computer that it trusts.
package struct Pairing: Sendable, Hashable {
  /// The name that the computer gave the pairing.
  package let hostID: String
  /// The identifier of the computer's usbmuxd.
  package let systemBUID: String
  /// The DER of the certificate that the device presents: its own key, signed by the computer's root.
  package let deviceCertificate: [UInt8]
  /// The DER of the computer's certificates. In TLS, a client presents one of them.
  package let hostCertificate: [UInt8]
  package let rootCertificate: [UInt8]
  /// The bytes that the computer sends back when it requests a backup.
  package let escrowBag: [UInt8]

  /// The certificates. A client has to present one of them.
  package var clientCertificates: [[UInt8]] { [rootCertificate, hostCertificate] }

  /// Reads the record in a client's request to pair. A private key in the record is ignored.
  ///
  /// - Returns: `nil` if a part is missing, too long or not a certificate.
  package init?(record: PropertyDictionary, escrowBag: [UInt8]) {
    func certificate(_ key: String) -> [UInt8]? {
      record[key]?.dataValue.flatMap { $0.count <= Self.maximumCertificateByteCount ? PEM.certificate(in: $0) : nil }
    }
    guard let hostID = record["HostID"]?.stringValue, Self.isIdentifier(hostID),
      let systemBUID = record["SystemBUID"]?.stringValue, Self.isIdentifier(systemBUID),
      let device = certificate("DeviceCertificate"), let host = certificate("HostCertificate"),
      let root = certificate("RootCertificate")
    else { return nil }
    self.hostID = hostID
    self.systemBUID = systemBUID
    (deviceCertificate, hostCertificate, rootCertificate) = (device, host, root)
    self.escrowBag = escrowBag
  }

  private static let maximumCertificateByteCount = 16 << 10

  /// Returns whether a text is a valid name of a pairing: letters, digits and hyphens, at most 64.
  private static func isIdentifier(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.allSatisfy { $0 == "-" || ($0.isASCII && ($0.isLetter || $0.isNumber)) }
  }

  /// The pairing as an entry of the stored file.
  var stored: PropertyDictionary {
    [
      "HostID": .string(hostID), "SystemBUID": .string(systemBUID), "DeviceCertificate": .data(deviceCertificate),
      "HostCertificate": .data(hostCertificate), "RootCertificate": .data(rootCertificate),
      "EscrowBag": .data(escrowBag),
    ]
  }

  /// Reads an entry of the stored file.
  init?(stored: PropertyDictionary) {
    guard let hostID = stored["HostID"]?.stringValue, let systemBUID = stored["SystemBUID"]?.stringValue,
      let device = stored["DeviceCertificate"]?.dataValue, let host = stored["HostCertificate"]?.dataValue,
      let root = stored["RootCertificate"]?.dataValue, let escrowBag = stored["EscrowBag"]?.dataValue
    else { return nil }
    self.hostID = hostID
    self.systemBUID = systemBUID
    (deviceCertificate, hostCertificate, rootCertificate) = (device, host, root)
    self.escrowBag = escrowBag
  }
}

/// Converts between DER and its text form (RFC 7468).
package enum PEM {
  /// Returns the DER of the first certificate in a text.
  ///
  /// - Returns: The DER; `nil` if there is no certificate.
  package static func certificate(in text: [UInt8]) -> [UInt8]? {
    let (begin, end) = (Array("-----BEGIN CERTIFICATE-----".utf8), Array("-----END CERTIFICATE-----".utf8))
    guard let start = text.firstRange(of: begin), let stop = text[start.upperBound...].firstRange(of: end) else {
      return nil
    }
    guard let der = Base64Digits.bytes(of: text[start.upperBound..<stop.lowerBound]), !der.isEmpty else { return nil }
    return der
  }

  /// Returns the text of a public RSA key in PKCS#1.
  package static func rsaPublicKey(_ der: [UInt8]) -> [UInt8] {
    let lineLength = 64
    var text = "-----BEGIN RSA PUBLIC KEY-----\n"
    var digits = Base64Digits.text(of: der)[...]
    while !digits.isEmpty {
      text += digits.prefix(lineLength) + "\n"
      digits = digits.dropFirst(lineLength)
    }
    return Array((text + "-----END RSA PUBLIC KEY-----\n").utf8)
  }
}
