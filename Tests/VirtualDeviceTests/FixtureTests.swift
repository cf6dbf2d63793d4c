import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import TestSupport
import Testing

@testable import VirtualDevice

@Suite("Devices from fixtures")
struct FixtureTests {
  private static let fixture = """
    {
      "format": "device-fixture/1",
      "seed": 7,
      "created": "2026-11-20T17:58:00Z",
      "device": { "name": "sample", "product_type": "iPhone14,5", "product_version": "17.0", "passcode": "2580" },
      "apps": [ { "name": "chat", "groups": [ "A.chat" ] } ],
      "items": [
        {
          "kind": "generic-password", "protection": "ak",
          "attributes": {
            "acct": "anna", "svce": "chat.example", "agrp": "A.chat", "gena": { "base64": "AAH/" }, "sync": 1,
            "cdat": { "date": "2025-01-02T03:04:05.5Z" }, "mdat": { "date": "2026-01-02T03:04:05.25Z" }
          },
          "secret": { "text": "grüße" }
        },
        {
          "kind": "internet-password", "protection": "dku",
          "attributes": { "acct": "anna", "srvr": "imap.example.org", "port": 993, "clip": 1 },
          "secret": { "base64": "AP8=" }
        },
        {
          "kind": "generic-password", "protection": "akpu", "access_control": [ "biometry-any" ],
          "attributes": { "acct": "vault" }, "secret": { "text": "v" }
        },
        {
          "kind": "key", "protection": "aku", "token": "com.apple.setoken",
          "attributes": { "labl": "chip" }, "secret": { "base64": "BAEC" }
        },
        { "kind": "certificate", "protection": "dk", "attributes": { "labl": "no secret" } }
      ]
    }
    """

  private func decode(_ text: String) throws -> DeviceFixture {
    try DeviceFixture(decoding: Array(text.utf8), from: "sample.json")
  }

  private func createDevice(
    _ phones: Phones, named name: String? = nil, keys: DeviceFixture.Keys = .random
  ) throws -> VirtualDevice {
    try phones.home.create(from: decode(Self.fixture), named: name.map { try DeviceName($0) }, keys: keys)
  }

  @Test("A device from a fixture has its identity, apps and passcode")
  func identity() throws {
    let phones = try Phones()
    let session = try createDevice(phones).openSession()
    #expect(session.name == "sample")
    #expect(session.record.productType == "iPhone14,5")
    #expect(session.record.productVersion.text == "17.0")
    #expect(session.record.build == "21A329")
    #expect(session.record.created == Timestamp.date(from: "2026-11-20T17:58:00Z"))
    #expect(session.record.apps == [DeviceApp(name: "chat", accessGroups: ["A.chat"])])
    try session.restart()
    #expect(try code { try session.unlock("1234") } == .wrongPasscode)
    try session.unlock("2580")
  }

  @Test("A device from a fixture has its items with types, dates, secrets, tokens and access controls")
  func items() throws {
    let phones = try Phones()
    let items = try createDevice(phones).openSession(.reading).find(ItemQuery(wantsSecret: true)).items.map(\.item)
    #expect(items.count == 5)
    let chat = try #require(items.first { $0[.account] == .string("anna") && $0.kind == .genericPassword })
    #expect(chat.protection == .whenUnlocked)
    #expect(chat[.generic] == .data([0, 1, 0xFF]))
    #expect(chat.isSynchronizable)
    #expect(chat.creationDate == Timestamp.date(from: "2025-01-02T03:04:05.5Z"))
    #expect(chat.modificationDate == Timestamp.date(from: "2026-01-02T03:04:05.25Z"))
    #expect(chat.secret?.constantTimeEquals(SensitiveBytes(copying: Array("grüße".utf8))) == true)

    let imap = try #require(items.first { $0.kind == .internetPassword })
    #expect(imap[.port] == .integer(993))
    #expect(imap[.appClip] == .integer(1))
    #expect(imap.accessGroup == "keyhaul")
    #expect(imap.creationDate == Timestamp.date(from: "2026-11-20T17:58:00Z"))
    #expect(imap.modificationDate == imap.creationDate)
    #expect(imap.secret?.constantTimeEquals(SensitiveBytes(copying: [0, 0xFF])) == true)

    let vault = try #require(items.first { $0[.account] == .string("vault") })
    // Decryption requires biometry.
    #expect(
      vault[.accessControl]?.dictionaryValue?["od"] == .dictionary(["cbio": .boolean(true)]))
    let chip = try #require(items.first { $0.kind == .key })
    #expect(chip[.tokenID] == .string("com.apple.setoken"))
    #expect(items.first { $0.kind == .certificate }?.secret == nil)
  }

  @Test("With published keys, the same fixture and name result in the same device")
  func deterministic() throws {
    let (phones, otherPhones) = (try Phones(), try Phones(seed: "others"))
    let device = try createDevice(phones, keys: .published)
    let sameDevice = try createDevice(otherPhones, keys: .published)
    for file in [DeviceFile.hardware, .keybag, .memory, .record] {
      #expect(try device.read(file) == sameDevice.read(file))
    }
    func persistentReferences(_ device: VirtualDevice) throws -> [[UInt8]] {
      try device.openSession().find(ItemQuery()).items.map(\.persistentReference)
    }
    #expect(try persistentReferences(device) == persistentReferences(sameDevice))
  }

  @Test("With published keys, the same fixture with another name results in another device")
  func otherName() throws {
    let phones = try Phones()
    let device = try createDevice(phones, keys: .published)
    let otherDevice = try createDevice(phones, named: "twin", keys: .published)
    #expect(try otherDevice.read(.hardware) != device.read(.hardware))
    #expect(try otherDevice.openSession(.reading).record.name == "twin")
    #expect(try otherDevice.openSession(.reading).record.udid != device.openSession(.reading).record.udid)
  }

  @Test("A given passcode replaces the fixture's")
  func otherPasscode() throws {
    let phones = try Phones()
    let device = try phones.home.create(from: decode(Self.fixture), passcode: Secret(utf8: "0000"))
    try device.openSession().lock()
    try device.openSession().unlock("0000")
  }

  @Test("Attributes and classes in a fixture may have the names of Apple's headers")
  func constants() throws {
    let withHeaderNames = Self.fixture.replacing("\"acct\"", with: "\"kSecAttrAccount\"")
      .replacing("\"svce\"", with: "\"kSecAttrService\"")
      .replacing("\"protection\": \"ak\"", with: "\"protection\": \"kSecAttrAccessibleWhenUnlocked\"")
    try #require(
      withHeaderNames.contains("kSecAttrAccount") && withHeaderNames.contains("kSecAttrAccessibleWhenUnlocked"))
    let items = try decode(withHeaderNames).items
    #expect(try items.map(\.item.attributes) == decode(Self.fixture).items.map(\.item.attributes))
    #expect(items[0].item[.account] == .string("anna") && items[0].item.protection == .whenUnlocked)
  }

  @Test(
    "Invalid fixtures are rejected with the path of the error",
    arguments: [
      ("\"seed\": 7", "\"sede\": 7", "sede"),
      ("\"seed\": 7", "\"seed\": \"7\"", "seed should be a whole number"),
      ("\"seed\": 7", "\"seed\": -7", "seed is less than 0"),
      ("\"created\": \"2026", "\"created\": \"26", "created is not an RFC 3339 time"),
      ("\"passcode\"", "\"pin\"", "device.pin is not a known member"),
      ("\"2580\"", "\"\"", "device.passcode is empty"),
      ("\"name\": \"sample\"", "\"name\": \"../x\"", "device.name"),
      ("\"17.0\"", "\"x\"", "device.product_version"),
      ("\"groups\": [ \"A.chat\" ]", "\"groups\": []", "apps[0].groups is empty"),
      ("\"generic-password\", \"protection\": \"ak\"", "\"password\", \"protection\": \"ak\"", "items[0].kind"),
      ("\"protection\": \"ak\"", "\"protection\": \"xx\"", "items[0].protection"),
      (
        "\"acct\": \"anna\", \"svce\"", "\"acount\": \"anna\", \"svce\"",
        "items[0].attributes.acount is not an attribute"
      ),
      ("\"svce\": \"chat.example\"", "\"svce\": null", "items[0].attributes.svce"),
      ("\"svce\": \"chat.example\"", "\"svce\": 1.5", "items[0].attributes.svce"),
      (
        "\"svce\": \"chat.example\"", "\"svce\": {\"hex\": \"00\"}",
        "items[0].attributes.svce.hex is not a known member"
      ),
      ("\"svce\": \"chat.example\"", "\"svce\": {}", "items[0].attributes.svce should have one member"),
      ("\"AAH/\"", "\"AAH\"", "items[0].attributes.gena.base64 is not base64"),
      ("\"2025-01-02T", "\"2025-02-30T", "items[0].attributes.cdat.date"),
      ("\"svce\": \"chat.example\"", "\"pdmn\": \"ck\"", "items[0].attributes.pdmn cannot be set"),
      ("\"svce\"", "\"kSecAttrAccount\"", "items[0].attributes.kSecAttrAccount occurs a second time"),
      ("\"svce\"", "\"kSecAttrServer\"", "items[0].attributes.kSecAttrServer is not an attribute"),
      (
        "\"svce\": \"chat.example\"", "\"kSecAttrAccessible\": \"ck\"",
        "items[0].attributes.kSecAttrAccessible cannot be set"
      ),
      ("\"svce\": \"chat.example\"", "\"v_Data\": \"ck\"", "items[0].attributes.v_Data"),
      ("\"text\": \"grüße\"", "\"txt\": \"grüße\"", "items[0].secret.txt is not a known member"),
      ("{ \"base64\": \"AP8=\" }", "\"AP8=\"", "items[1].secret should be an object"),
      ("\"biometry-any\"", "\"face\"", "items[2].access_control[0] is not a known constraint"),
      ("[ \"biometry-any\" ]", "[]", "items[2].access_control is empty"),
      ("\"com.apple.setoken\"", "\"\"", "items[3].token is empty"),
      ("\"kind\": \"certificate\", ", "", "items[4] has no \"kind\""),
      ("\"kind\": \"certificate\", \"protection\": \"dk\", ", "", "items[4] has no \"kind\" and \"protection\""),
      ("\"protection\": \"ak\"", "\"protection\": \"when_unlocked\"", "items[0].protection is not a protection class"),
    ])
  func refused(_ old: String, _ new: String, _ path: String) throws {
    let changedFixture = Self.fixture.replacing(old, with: new, maxReplacements: 1)
    try #require(changedFixture != Self.fixture)
    let error = #expect(throws: KeyhaulError.self) { _ = try decode(changedFixture) }
    #expect(error?.code == .badFixture)
    #expect(error?.subject == "sample.json")
    #expect(error?.reason.hasPrefix(path) == true, "\(error?.reason ?? "")")
  }

  @Test("The error for an incomplete fixture names all missing members")
  func missing() {
    for (text, reason) in [
      ("{}", "the document has no \"format\", \"created\", \"device\" and \"items\""),
      (#"{"format": "device-fixture/1"}"#, "the document has no \"created\", \"device\" and \"items\""),
    ] {
      let error = #expect(throws: KeyhaulError.self) { _ = try decode(text) }
      #expect(error?.code == .badFixture && error?.reason == reason, "\(error?.reason ?? "")")
    }
  }

  @Test("Members with defaults may be omitted, and classes may be named in words")
  func omittedMembers() throws {
    let fixture = try decode(
      """
      {
        "format": "device-fixture/1", "created": "2026-11-20T17:58:00Z", "device": { "name": "short" },
        "items": [
          { "kind": "generic-password", "protection": "when-unlocked", "attributes": { "acct": "a" } },
          { "kind": "generic-password", "protection": "after-first-unlock-this-device", "attributes": { "acct": "b" } },
          { "kind": "generic-password", "protection": "always-this-device", "attributes": { "acct": "c" } }
        ]
      }
      """)
    #expect(fixture.seed == 0 && fixture.apps.isEmpty && fixture.passcode == nil)
    #expect(fixture.identity.productType == "iPhone15,2" && fixture.identity.productVersion.text == "18.1")
    #expect(
      fixture.items.map(\.item.protection) == [
        .whenUnlocked, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
      ])
    let phones = try Phones()
    #expect(try phones.home.create(from: fixture).openSession().itemCount == 3)
  }

  @Test("A fixture at the size limit is read, and one byte more is rejected")
  func sizeLimit() throws {
    let bytes = Array(Self.fixture.utf8)
    #expect(throws: Never.self) {
      try DeviceFixture(decoding: bytes, from: "x", acceptingAtMost: bytes.count)
    }
    let error = #expect(throws: KeyhaulError.self) {
      try DeviceFixture(decoding: bytes, from: "x", acceptingAtMost: 1_000)
    }
    #expect(error?.code == .badFixture)
    // The error has no size, because a file is only read up to the limit.
    #expect(error?.reason == "it has more than 1,000 bytes, which is the limit")
    #expect(
      try code { _ = try DeviceFixture(decoding: bytes, from: "x", acceptingAtMost: bytes.count - 1) } == .badFixture)
    // 512 MiB
    #expect(DeviceFixture.maximumByteCount == 536_870_912)
  }

  @Test("A fixture of another format version is rejected")
  func otherFormat() throws {
    let text = Self.fixture.replacing("device-fixture/1", with: "device-fixture/2")
    #expect(try code { _ = try decode(text) } == .unsupportedVersion)
  }

  @Test("A fixture with a duplicate item is rejected, and no device is created")
  func duplicate() throws {
    let phones = try Phones()
    var fixture = try decode(Self.fixture)
    fixture.items.append(fixture.items[0])
    #expect(try code { _ = try phones.home.create(from: fixture) } == .badFixture)
    #expect(try FileManager.default.contentsOfDirectory(atPath: phones.home.path).isEmpty)
  }

  @Test("A fixture with an item that requires a passcode but without a passcode is rejected")
  func noPasscode() throws {
    let phones = try Phones()
    var fixture = try decode(Self.fixture)
    fixture.passcode = nil
    let error = #expect(throws: KeyhaulError.self) { _ = try phones.home.create(from: fixture) }
    #expect(error?.code == .badFixture)
    #expect(error?.reason.contains("passcode") == true)
  }

  @Test("Errors for fixtures contain no secrets")
  func noSecrets() throws {
    for text in [
      Self.fixture.replacing("\"text\": \"grüße\"", with: "\"txt\": \"planted\""),
      Self.fixture.replacing("\"AP8=\"", with: "\"planted!\""),
      Self.fixture.replacing("\"2580\"", with: "[\"planted\"]"),
    ] {
      let error = #expect(throws: KeyhaulError.self) { _ = try decode(text) }
      #expect(error.map { "\($0) \($0.advice)".contains("planted") } == false)
    }
  }

  @Test(
    "Every bundled fixture results in a device with all its items",
    arguments: ["old-phone", "new-phone", "hostile-names", "every-rule", "every-rule-target"])
  func bundled(_ name: String) throws {
    let phones = try Phones()
    let path = Repository.root.appending(path: "Fixtures/devices/\(name).json")
    let fixture = try DeviceFixture(decoding: Array(Data(contentsOf: path)), from: name)
    let session = try phones.home.create(from: fixture).openSession()
    let itemCount = fixture.items.count { !$0.item.isTombstone }
    #expect(try session.itemCount == itemCount)
    #expect(try session.find(ItemQuery(wantsSecret: true)).items.count == itemCount)
  }
}
