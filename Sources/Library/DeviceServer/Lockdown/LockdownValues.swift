import Basics
import KeychainCrypto
package import KeychainFormats
package import VirtualDevice

/// The values of a device that lockdown reports, by domain and key.
package struct LockdownValues: Sendable {
  /// The values of the unnamed domain that every client may read.
  private let publicValues: PropertyDictionary
  /// All values of the unnamed domain, which a client may read only in a session.
  private let sessionValues: PropertyDictionary
  /// The values of the named domains, which a client may read only in a session.
  private let domains: [String: PropertyDictionary]

  /// Creates the values of a device.
  ///
  /// - Parameters:
  ///   - record: The device.
  ///   - publicKey: The DER of its RSAPublicKey.
  ///   - isBackupEncrypted: Whether backups that clients make have a password.
  package init(_ record: DeviceRecord, publicKey: [UInt8], isBackupEncrypted: Bool) {
    let digest = (try? Digest.sha256(Array(record.udid.utf8))) ?? [UInt8](repeating: 0, count: 32)
    // The second-lowest bit of the first byte marks an address that no manufacturer assigned (IEEE 802).
    let address = ([0x02] + digest.prefix(5)).map { String(hexadecimal: [$0]) }.joined(separator: ":")
    let deviceClass = String(record.productType.prefix { $0.isLetter })
    var publicValues: PropertyDictionary = [
      "DeviceClass": .string(deviceClass.isEmpty ? "iPhone" : deviceClass),
      "DevicePublicKey": .data(PEM.rsaPublicKey(publicKey)), "ProductType": .string(record.productType),
      "ProductVersion": .string(record.productVersion.text), "UniqueDeviceID": .string(record.udid),
      "WiFiAddress": .string(address),
    ]
    publicValues["BuildVersion"] = record.build.map { .string($0) }
    self.publicValues = publicValues
    var sessionValues = publicValues
    sessionValues["ActivationState"] = .string("Activated")
    sessionValues["CPUArchitecture"] = .string("arm64e")
    sessionValues["DeviceName"] = .string(record.name)
    sessionValues["PasswordProtected"] = .boolean(false)
    sessionValues["ProductName"] = .string("iPhone OS")
    sessionValues["SerialNumber"] = .string(record.serialNumber)
    sessionValues["TimeZone"] = .string("UTC")
    sessionValues["UniqueChipID"] = .integer(Int64(bitPattern: bigEndianInteger(digest.suffix(6))))
    self.sessionValues = sessionValues
    domains = [
      "com.apple.mobile.backup": ["WillEncrypt": .boolean(isBackupEncrypted)],
      "com.apple.iTunes": [:],
      "com.apple.mobile.iTunes": ["MinITunesVersion": .string("12.8")],
    ]
  }

  /// Returns the value of a key, or all values of a domain.
  ///
  /// - Parameter isInSession: Whether the client has proven that it is paired.
  /// - Returns: `nil` if there is no such value, or the client may not read it.
  package func value(domain: String?, key: String?, isInSession: Bool) -> PropertyValue? {
    let values = domain.map { isInSession ? domains[$0] : nil } ?? (isInSession ? sessionValues : publicValues)
    guard let values else { return nil }
    return key.map { values[$0] } ?? .dictionary(values)
  }
}
