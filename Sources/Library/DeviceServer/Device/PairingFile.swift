import Basics
import KeychainCrypto
import KeychainFormats

/// The stored pairings of a device: its RSA key, the computers that it trusts, and the pair record that its usbmuxd
/// keeps for the computer.
struct PairingFile: Sendable {
  /// The DER of the device's RSAPrivateKey.
  var privateKey: SensitiveBytes
  /// The DER of the RSAPublicKey.
  var publicKey: [UInt8]
  /// The pairings, the newest last.
  var pairings: [Pairing] = []
  /// The computer's record of the pairing, which contains the computer's private keys. Only clients read these bytes.
  var pairRecord: [UInt8]?

  private static let format = "device-pairings/1"
  private static let maximumPairingCount = 64
  private static let keySizeInBits = 2048

  /// Creates a file with a new key and without pairings.
  init() throws(CertificateError) {
    let key = try KeyMaterial.generateRSA(sizeInBits: Self.keySizeInBits)
    (privateKey, publicKey) = (key.externalRepresentation, key.publicKey)
  }

  /// Reads a stored file.
  ///
  /// - Returns: `nil` if the bytes are not a pairing file.
  init?(_ bytes: [UInt8]) {
    guard var root = (try? BinaryPlist.decode(bytes))?.dictionaryValue, root["Format"]?.stringValue == Self.format,
      var key = root["PrivateKey"]?.dataValue, let publicKey = root["PublicKey"]?.dataValue
    else { return nil }
    privateKey = SensitiveBytes(copying: key)
    self.publicKey = publicKey
    pairings = (root["Pairings"]?.arrayValue ?? []).compactMap { $0.dictionaryValue.flatMap(Pairing.init(stored:)) }
    pairRecord = root["PairRecord"]?.dataValue
    // `root` shares the key's bytes with `key`. They are overwritten in place only if `root` has released them.
    root = [:]
    key.withUnsafeMutableBytes { wipe($0) }
  }

  /// Returns the bytes of the stored file. The caller must overwrite them after use.
  func encoded() throws(FormatError) -> [UInt8] {
    var key = privateKey.withBytes { Array($0) }
    defer { key.withUnsafeMutableBytes { wipe($0) } }
    return try BinaryPlist.encode(.dictionary(root(withKey: key)))
  }

  private func root(withKey key: [UInt8]) -> PropertyDictionary {
    var root: PropertyDictionary = [
      "Format": .string(Self.format), "PrivateKey": .data(key), "PublicKey": .data(publicKey),
      "Pairings": .array(pairings.map { .dictionary($0.stored) }),
    ]
    root["PairRecord"] = pairRecord.map { .data($0) }
    return root
  }

  /// Adds a pairing, or replaces one with the same name. If there are too many, the oldest is removed.
  mutating func add(_ pairing: Pairing) {
    pairings.removeAll { $0.hostID == pairing.hostID }
    pairings.append(pairing)
    if pairings.count > Self.maximumPairingCount { pairings.removeFirst() }
  }
}
