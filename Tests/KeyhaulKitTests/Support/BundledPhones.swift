import KeychainCrypto
import KeychainFormats
import KeyhaulKit
import Testing
import VirtualDevice

extension TestSetup {
  /// Creates a phone from a bundled fixture.
  ///
  /// - Parameter passcode: A passcode that replaces the passcode of the fixture.
  func bundled(_ fixture: String, named name: String? = nil, passcode: String? = nil) throws -> VirtualDevice {
    let bytes = try #require(BundledFixtures.bytes(named: fixture))
    return try home.create(
      from: DeviceFixture(decoding: bytes, from: fixture), named: name.map { try DeviceName($0) },
      passcode: secret(passcode))
  }
}

extension MigrationPlan {
  /// Returns the decision about the only item with this account or label.
  func decision(_ name: String) throws -> Decision {
    let matches = decisions(named: name)
    #expect(matches.count == 1, "\(name)")
    return try #require(matches.first)
  }
}
