import KeychainCrypto
import KeychainFormats
import Keychains
import KeyhaulKit
import TestSupport
import Testing
import VirtualDevice

/// The keys and certificates were created by `openssl` and Python's `cryptography`.
@Suite("Restores of identities")
struct IdentityTests {
  /// Returns a certificate and the private key of its public key, by their names in the test vectors.
  private func identity(
    certificateName: String, keyName: String
  ) throws -> (certificate: KeychainItem, key: KeychainItem) {
    let vectors = try TestVectors.certificates()
    let certificateVector = try vectors["certificates"].element(named: certificateName)
    let keyVector = try vectors["keys"].element(named: keyName)
    let bytes = try keyVector["private_hex"].bytes
    return (
      KeychainItem(try CertificateAttributes(der: certificateVector["der_hex"].bytes)),
      KeychainItem(try KeyMaterial(parsing: SensitiveBytes(copying: bytes)))
    )
  }

  private func identityItems(of session: DeviceSession) throws -> (certificates: [KeychainItem], keys: [KeychainItem]) {
    (
      try session.find(ItemQuery(kind: .certificate, wantsSecret: true)).items.map(\.item),
      try session.find(ItemQuery(kind: .key, wantsSecret: true)).items.map(\.item)
    )
  }

  @Test(
    "Certificate and key are both restored with the backup's password and still match",
    arguments: [
      ("RSA, printable names", "RSA 2048"), ("P-256 of an RSA issuer", "P-256"),
      ("P-384, two attributes in one set", "P-384"), ("P-521, a unit, the longest serial number", "P-521"),
    ])
  func restored(certificateName: String, keyName: String) throws {
    let setup = try TestSetup()
    let old = try setup.phone("old-phone", passcode: "123456")
    let original = try identity(certificateName: certificateName, keyName: keyName)
    let session = try old.openTestSession()
    try session.add(original.certificate)
    try session.add(original.key)
    session.invalidate()
    let path = try setup.backUp(old, password: TestSetup.password)

    let new = try setup.phone("new-phone").openTestSession()
    defer { new.invalidate() }
    try new.restore(setup.open(path, password: TestSetup.password, on: new))
    let restored = try identityItems(of: new)
    #expect(restored.certificates.count == 1 && restored.keys.count == 1)
    #expect(restored.certificates[0].isIdentity(with: restored.keys[0]))
    #expect(restored.certificates[0].secretBytes == original.certificate.secretBytes)
    #expect(restored.keys[0].secretBytes == original.key.secretBytes)
  }

  @Test("A this-device-only key stays behind, so the certificate is an identity only on the source device")
  func keyStaysBehind() throws {
    let setup = try TestSetup()
    let old = try setup.phone("old-phone", passcode: "123456")
    let original = try identity(certificateName: "RSA, printable names", keyName: "RSA 2048")
    var key = original.key
    key.protection = .afterFirstUnlockThisDeviceOnly
    let session = try old.openTestSession()
    try session.add(original.certificate)
    try session.add(key)
    session.invalidate()
    let path = try setup.backUp(old, password: TestSetup.password)

    let new = try setup.phone("new-phone").openTestSession()
    try new.restore(setup.open(path, password: TestSetup.password, on: new))
    let restored = try identityItems(of: new)
    #expect(restored.certificates.count == 1 && restored.keys.isEmpty)
    new.invalidate()

    let source = try old.openTestSession()
    defer { source.invalidate() }
    try source.erase()
    try source.restore(setup.open(path, password: TestSetup.password, on: source))
    let restoredToSource = try identityItems(of: source)
    #expect(restoredToSource.certificates[0].isIdentity(with: try #require(restoredToSource.keys.first)))
  }
}
