import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import VirtualDevice

@Suite("Device keys of devices from fixtures")
struct PublishedKeyTests {
  private func fixture(seed: String = "\"seed\": 7,") throws -> DeviceFixture {
    let text = """
      { "format": "device-fixture/1", \(seed) "created": "2026-11-20T17:58:00Z", "device": { "name": "sample" },
        "items": [ { "kind": "generic-password", "protection": "aku", "attributes": { "acct": "anna" } } ] }
      """
    return try DeviceFixture(decoding: Array(text.utf8), from: "sample.json")
  }

  private func files(_ device: VirtualDevice) throws -> [[UInt8]] {
    try [DeviceFile.hardware, .keybag, .memory, .record].map { try device.read($0) }
  }

  @Test("Two devices from the same fixture have different keys and identifiers by default")
  func random() throws {
    let (phones, otherPhones) = (try Phones(), try Phones(seed: "others"))
    let device = try phones.home.create(from: fixture())
    let otherDevice = try otherPhones.home.create(from: fixture())
    for (file, otherFile) in zip(try files(device), try files(otherDevice)) { #expect(file != otherFile) }
    #expect(try device.openSession(.reading).record.udid != otherDevice.openSession(.reading).record.udid)
    #expect(!String(decoding: try device.read(.record), as: UTF8.self).contains("published"))
    for device in [device, otherDevice] {
      let session = try device.openSession(.reading)
      #expect(!session.record.hasPublishedDeviceKey)
      #expect(try !session.isDeviceKeyPublished(knownSeeds: [7]))
      #expect(session.record.created == Timestamp.date(from: "2026-11-20T17:58:00Z"))
      session.invalidate()
    }
  }

  @Test("A device with published keys has the published device key and records this")
  func published() throws {
    let (phones, otherPhones) = (try Phones(), try Phones(seed: "others"))
    let device = try phones.home.create(from: fixture(), keys: .published)
    let sameDevice = try otherPhones.home.create(from: fixture(), keys: .published)
    #expect(try files(device) == files(sameDevice))
    let session = try device.openSession()
    #expect(session.record.hasPublishedDeviceKey)
    #expect(try session.isDeviceKeyPublished())
    try session.erase()
    #expect(try session.isDeviceKeyPublished())
    session.invalidate()
    #expect(try device.summary(command: "test").isDeviceKeyPublished == true)
    let record = String(decoding: try device.read(.record), as: UTF8.self)
    #expect(record.contains("\"published_hardware_key\": true"))
  }

  /// Removes the member on published keys from a device's record, as if an earlier version had written the record.
  private func removePublishedKeyMember(_ device: VirtualDevice) throws {
    let text = String(decoding: try device.read(.record), as: UTF8.self)
    let textWithoutMember = text.replacing(/,?\s*"published_hardware_key"\s*:\s*true/, with: "")
    #expect(textWithoutMember != text)
    try device.write(Array(textWithoutMember.utf8), to: .record)
    #expect(try !device.openSession(.reading).record.hasPublishedDeviceKey)
  }

  @Test("A published device key of an earlier version is recognized by a known seed")
  func earlierVersion() throws {
    let phones = try Phones()
    for name in ["sample", "twin"] {
      let device = try phones.home.create(from: fixture(), named: DeviceName(name), keys: .published)
      try removePublishedKeyMember(device)
      let session = try device.openSession(.reading)
      #expect(try !session.isDeviceKeyPublished(knownSeeds: [6, 8]))
      #expect(try session.isDeviceKeyPublished(knownSeeds: [6, 7, 8]))
    }
    // A fixture without a seed uses the standard one.
    let unseeded = try phones.home.create(from: fixture(seed: ""), named: DeviceName("plain"), keys: .published)
    try removePublishedKeyMember(unseeded)
    #expect(try unseeded.openSession(.reading).isDeviceKeyPublished())
  }

  @Test("The device key of a device without a fixture is not published")
  func withoutFixture() throws {
    let phones = try Phones()
    let device = try phones.create("sample")
    #expect(try !device.openSession(.reading).isDeviceKeyPublished(knownSeeds: 0..<100))
  }

  /// Computed independently: the key is bytes 22 to 53 of the SHA-256 digests of "device-fixture/1 20261120 old-phone"
  /// and the block number as 8 bytes (Python: `hashlib.sha256(seed + n.to_bytes(8, "big")).digest()`).
  @Test("The published hardware UID equals one computed independently from seed and name")
  func independentValue() throws {
    let uid = try DeviceFixture.publishedHardware(seed: 20_261_120, name: "old-phone").withBytes { Array($0) }
    #expect(uid == (try [UInt8](hex: "3ac855a2c46f9a2b43c3320b3552091227bdb5f6e04ceac41d4dea0087750951")))
  }
}
