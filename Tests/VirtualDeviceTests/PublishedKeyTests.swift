import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import VirtualDevice

@Suite("Hardware keys of devices from fixtures")
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
    let phones = (try Phones(), try Phones(seed: "others"))
    let (one, two) = (
      try phones.0.home.create(from: fixture()), try phones.1.home.create(from: fixture())
    )
    for (left, right) in zip(try files(one), try files(two)) { #expect(left != right) }
    #expect(try one.openSession(.reading).record.udid != two.openSession(.reading).record.udid)
    for device in [one, two] {
      let session = try device.openSession(.reading)
      #expect(!session.record.hasPublishedHardwareKey)
      #expect(try !session.isHardwareKeyPublished(knownSeeds: [7]))
      #expect(session.record.created == Timestamp.date(from: "2026-11-20T17:58:00Z"))
      session.invalidate()
    }
    #expect(!String(decoding: try one.read(.record), as: UTF8.self).contains("published"))
  }

  @Test("A device with published keys has the published hardware key and records this")
  func published() throws {
    let phones = (try Phones(), try Phones(seed: "others"))
    let (one, two) = (
      try phones.0.home.create(from: fixture(), keys: .published),
      try phones.1.home.create(from: fixture(), keys: .published)
    )
    #expect(try files(one) == files(two))
    let session = try one.openSession()
    #expect(session.record.hasPublishedHardwareKey)
    #expect(try session.isHardwareKeyPublished())
    try session.erase()
    #expect(try session.isHardwareKeyPublished())
    session.invalidate()
    #expect(try one.summary(verb: "test").isHardwareKeyPublished == true)
    let record = String(decoding: try one.read(.record), as: UTF8.self)
    #expect(record.contains("\"published_hardware_key\": true"))
  }

  /// Removes the note on published keys from a device, as earlier versions did not write it.
  private func removeRecord(_ device: VirtualDevice) throws {
    let text = String(decoding: try device.read(.record), as: UTF8.self)
    let plain = text.replacing(/,?\s*"published_hardware_key"\s*:\s*true/, with: "")
    #expect(plain != text)
    try device.write(Array(plain.utf8), to: .record)
    #expect(try !device.openSession(.reading).record.hasPublishedHardwareKey)
  }

  @Test("A published hardware key of an earlier version is recognized by a known seed")
  func earlier() throws {
    let phones = try Phones()
    for name in ["sample", "twin"] {
      let device = try phones.home.create(from: fixture(), named: DeviceName(name), keys: .published)
      try removeRecord(device)
      let session = try device.openSession(.reading)
      #expect(try !session.isHardwareKeyPublished(knownSeeds: [6, 8]))
      #expect(try session.isHardwareKeyPublished(knownSeeds: [6, 7, 8]))
    }
    // A fixture without a seed uses the standard one.
    let unseeded = try phones.home.create(from: fixture(seed: ""), named: DeviceName("plain"), keys: .published)
    try removeRecord(unseeded)
    #expect(try unseeded.openSession(.reading).isHardwareKeyPublished())
  }

  @Test("The hardware key of a device without a fixture is not published")
  func withoutFixture() throws {
    let phones = try Phones()
    let device = try phones.create("sample")
    #expect(try !device.openSession(.reading).isHardwareKeyPublished(knownSeeds: 0..<100))
  }

  /// Computed independently: the key is bytes 22 to 53 of the SHA-256 digests of "device-fixture/1 20261120 old-phone"
  /// and the block number as 8 bytes (Python: `hashlib.sha256(seed + n.to_bytes(8, "big")).digest()`).
  @Test("The published hardware key equals one computed independently from seed and name")
  func independentValue() throws {
    let uid = try DeviceFixture.publishedHardware(seed: 20_261_120, name: "old-phone").withBytes { Array($0) }
    #expect(uid == (try [UInt8](hex: "3ac855a2c46f9a2b43c3320b3552091227bdb5f6e04ceac41d4dea0087750951")))
  }
}
