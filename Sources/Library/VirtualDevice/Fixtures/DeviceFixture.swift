package import Basics
import KeychainCrypto
public import KeychainFormats

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a person must do before an item opens.
package enum AccessConstraint: String, Sendable, CaseIterable {
  /// Biometry or the passcode.
  case userPresence = "user-presence"
  /// A biometry that is enrolled, now or later.
  case biometryAny = "biometry-any"
  /// A biometry that is enrolled now, and no other after it.
  case biometryCurrentSet = "biometry-current-set"
  /// The device's passcode.
  case devicePasscode = "device-passcode"
  /// Signing and key agreement with a private key.
  case privateKeyUsage = "private-key-usage"
}

/// A description of a device and its keychain, from which the same device is made each time. Format `device-fixture/1`.
///
/// A fixture's passcode and secrets stand in it in clear: nothing for real use.
public struct DeviceFixture: Sendable {
  /// The format's name, as a fixture and a schema spell it.
  package static let format = "device-fixture/1"
  /// The most bytes a fixture may have.
  package static let maximumByteCount = 512 << 20
  /// The most values in it: some dozen for each of a million items.
  private static let maximumValueCount = 20_000_000

  /// One item, with what guards it beside its protection class.
  public struct Item: Sendable {
    /// Has its protection, its secret and, for a key in hardware, its token identifier.
    public var item: KeychainItem
    /// What a person must do before the item opens; empty for an item that asks nobody.
    package var accessConstraints: [AccessConstraint]
  }

  /// Identifiers and keys of a device with published keys derive from it and from the device's name (`Keys.published`).
  package var seed: Int64
  /// When the device was made; also the date of items that have none.
  package var created: KeychainDate
  /// The name of a device that is made from it, unless another is given.
  public var name: DeviceName
  /// The model and the version of iOS.
  package var identity: DeviceIdentity
  /// UTF-8; `nil` for a device without a passcode.
  package var passcode: SensitiveBytes?
  /// The apps with their access groups.
  package var apps: [DeviceApp]
  /// The items in the order in which they are added.
  public var items: [Item]
}

extension DeviceFixture {
  /// Reads a fixture.
  ///
  /// - Parameters:
  ///   - bytes: The fixture as JSON in UTF-8.
  ///   - source: What to call it in errors: a path or a bundled name.
  ///   - limit: The most bytes to accept.
  /// - Throws: `.badFixture` naming the place, such as `items[3].attributes.acct`; unknown members are errors.
  ///   `.unsupportedVersion`.
  package init(
    decoding bytes: [UInt8], from source: String, acceptingAtMost limit: Int = Self.maximumByteCount
  ) throws(KeyhaulError) {
    guard bytes.count <= limit else {
      // It may have been read no further.
      let reason = "it has more than \(HumanReadable.bytes(limit)), which is the limit"
      throw KeyhaulError(.badFixture, source, reason)
    }
    let root: JSONCursor
    do throws(JSONParseError) {
      let document = try JSONValue(parsing: bytes, acceptingAtMost: Self.maximumValueCount, decodingLazily: "items")
      root = JSONCursor(document, path: "")
    } catch {
      throw KeyhaulError(.badFixture, source, error.reason)
    }
    let format: String
    do throws(JSONCursor.Fault) {
      if try root.optional("format") == nil { try root.require(Self.requiredMembers) }
      format = try root.member("format").string()
      if format == Self.format {
        self = try Self(root)
        return
      }
    } catch {
      throw KeyhaulError(
        .badFixture, source, "\(error.path.isEmpty ? "the document" : error.path) \(error.reason)")
    }
    let reason = "its format is \"\(format)\"; Keyhaul reads \"\(Self.format)\""
    throw KeyhaulError(.unsupportedVersion, source, reason)
  }
}

extension DeviceFixture {
  /// Without these there is nothing to make; the others have a value where they are left out.
  static let requiredMembers = ["format", "created", "device", "items"]

  init(_ root: JSONCursor) throws(JSONCursor.Fault) {
    try root.allow(only: ["format", "seed", "created", "device", "apps", "items"])
    try root.require(Self.requiredMembers)
    seed = Self.standardSeed
    if let node = try root.optional("seed") { seed = Int64(try node.count(from: 0)) }
    created = try root.member("created").date()

    let device = try root.member("device")
    try device.allow(only: ["name", "product_type", "product_version", "passcode"])
    name = try device.member("name").deviceName()
    var productType = DeviceIdentity.standardProductType
    if let node = try device.optional("product_type") { productType = try node.nonEmptyString() }
    var productVersion = ProductVersion.standard
    if let node = try device.optional("product_version") { productVersion = try node.productVersion() }
    identity = DeviceIdentity(productType: productType, productVersion: productVersion)
    passcode = nil
    if let node = try device.optional("passcode") {
      let text = try node.string(where: { !$0.isEmpty }, "is empty; leave it out for a device without a passcode")
      passcode = SensitiveBytes(copying: Array(text.utf8))
    }

    apps = []
    var names: Set<String> = []
    for node in try root.optionalElements("apps") {
      try node.allow(only: ["name", "groups"])
      try node.require(["name", "groups"])
      var groups: [String] = []
      for group in try node.member("groups").elements() { groups.append(try group.nonEmptyString()) }
      guard !groups.isEmpty else { throw try node.member("groups").fault("is empty") }
      let name = try node.member("name").nonEmptyString()
      guard names.insert(name).inserted else { throw node.fault("is the second app with this name") }
      apps.append(DeviceApp(name: name, accessGroups: groups))
    }

    items = []
    for node in try root.member("items").elements() {
      var described = try Item(node, created: created)
      described.item.pack()
      items.append(described)
    }
  }
}

extension DeviceFixture.Item {
  /// What the members `protection`, `secret`, `access_control` and `token` say instead, and what the database decides.
  private static let reserved: Set<AttributeCode> = [
    .protection, .valueData, .accessControl, .tokenID, .rowID, .digest, .primaryKeyDigest, .encryptedData,
  ]

  init(_ node: JSONCursor, created: KeychainDate) throws(JSONCursor.Fault) {
    try node.allow(only: ["kind", "protection", "attributes", "secret", "access_control", "token"])
    try node.require(["kind", "protection", "attributes"])
    let kindNode = try node.member("kind")
    let kindName = try kindNode.string()
    guard let kind = ItemKind.allCases.first(where: { $0.reportName == kindName }) else {
      throw kindNode.fault(
        "is not a kind of item; known: \(ItemKind.allCases.map(\.reportName).joined(separator: ", "))")
    }
    let protectionNode = try node.member("protection")
    guard let protection = ProtectionClass(named: try protectionNode.string()) else {
      let known = ProtectionClass.allCases.map { "\($0.word) (\($0.rawValue))" }.joined(separator: ", ")
      throw protectionNode.fault("is not a protection class; known: \(known)")
    }

    item = KeychainItem(kind: kind)
    item.protection = protection
    item[.creationDate] = .date(created)
    item[.modificationDate] = .date(created)
    var named: Set<AttributeCode> = []
    for (key, value) in try node.member("attributes").members() {
      guard let code = AttributeTable.definition(named: key, in: kind)?.code else {
        throw value.fault("is not an attribute of a \(kind.reportName)")
      }
      guard !Self.reserved.contains(code) else { throw value.fault("cannot be set among the attributes") }
      guard named.insert(code).inserted else { throw value.fault("occurs a second time, under its other name") }
      item[code] = try value.attributeValue()
    }
    if let secret = try node.optional("secret") { item.secret = SensitiveBytes(copying: try secret.secretBytes()) }
    if let token = try node.optional("token") { item[.tokenID] = .string(try token.nonEmptyString()) }

    accessConstraints = []
    if let list = try node.optional("access_control") {
      for element in try list.elements() {
        guard let constraint = AccessConstraint(rawValue: try element.string()) else {
          let known = AccessConstraint.allCases.map(\.rawValue).joined(separator: ", ")
          throw element.fault("is not a known constraint; known: \(known)")
        }
        accessConstraints.append(constraint)
      }
      guard !accessConstraints.isEmpty else { throw list.fault("is empty") }
    }
  }
}

extension JSONCursor {
  func nonEmptyString() throws(Fault) -> String { try string(where: { !$0.isEmpty }, "is empty") }

  func deviceName() throws(Fault) -> DeviceName {
    let text = try string()
    do throws(KeyhaulError) { return try DeviceName(text) } catch { throw fault(error.reason) }
  }

  /// A string, a whole number, `{"base64": …}` or `{"date": …}`.
  func attributeValue() throws(Fault) -> PropertyValue {
    switch value {
    case .string(let text): return .string(text)
    case .integer(let number): return .integer(number)
    case .object:
      let members = try members()
      guard members.count == 1, let (key, node) = members.first else {
        throw fault("should have one member, \"base64\" or \"date\"")
      }
      switch key {
      case "base64": return .data(try node.base64())
      case "date": return .date(try node.date())
      default: throw node.fault("is not a known member; known members: base64, date")
      }
    case .null, .boolean, .number, .sensitive, .array, .elements:
      throw fault("should be a string, a whole number, {\"base64\"} or {\"date\"}, not \(value.typeName)")
    }
  }

  /// `{"text": …}` or `{"base64": …}`.
  func secretBytes() throws(Fault) -> [UInt8] {
    let members = try members()
    guard members.count == 1, let (key, node) = members.first else {
      throw fault("should have one member, \"text\" or \"base64\"")
    }
    switch key {
    case "text": return Array(try node.string().utf8)
    case "base64": return try node.base64()
    default: throw node.fault("is not a known member; known members: text, base64")
    }
  }

  func base64() throws(Fault) -> [UInt8] {
    guard let bytes = Data(base64Encoded: try string()) else { throw fault("is not base64") }
    return Array(bytes)
  }
}

extension DeviceFixture {
  /// Where the hardware key, the class keys and the identifiers of a device come from that is made of a fixture.
  public enum Keys: Sendable, Hashable {
    /// Nobody but the device's directory knows them.
    case random
    /// They derive from the fixture's seed and the device's name, so that everybody can compute them: a backup's items of
    /// this device only open wherever a device of the same name is made.
    case published
  }

  /// The seed of a fixture that names none.
  package static let standardSeed: Int64 = 0

  static func publishedRandomness(seed: Int64, name: String) -> SeededRandomSource {
    SeededRandomSource(seed: "\(format) \(seed) \(name)")
  }

  /// The hardware key of the device that this seed and name give, with `Keys.published`. An identifier and a serial
  /// number are drawn before it, as `VirtualDevice.initialize` draws them.
  static func publishedHardware(seed: Int64, name: String) throws(DataProtectionError) -> HardwareUID {
    let random = publishedRandomness(seed: seed, name: name)
    _ = try DeviceIdentity.randomUDID(random)
    _ = try DeviceIdentity.randomSerialNumber(random)
    return try HardwareUID(from: random)
  }
}

extension DeviceSession {
  /// Whether everybody can compute the device's hardware key, so that whatever is bound to it is bound to nothing.
  ///
  /// A device says so itself that was made with published keys. Of one that was made before this was recorded, the key
  /// is compared with those that known seeds give for the device's name.
  ///
  /// - Parameter seeds: Of published fixtures, beside `DeviceFixture.standardSeed`.
  /// - Throws: `.underlying` where the cryptographic library fails.
  package func isHardwareKeyPublished(knownSeeds seeds: some Sequence<Int64> = []) throws(KeyhaulError) -> Bool {
    if record.hasPublishedHardwareKey { return true }
    return try reporting(about: name) { () throws(DataProtectionError) in
      let own = hardware.withBytes { Secret(copying: $0) }
      for seed in [DeviceFixture.standardSeed] + seeds {
        for known in name == record.name ? [name] : [name, record.name] {
          let published = try DeviceFixture.publishedHardware(seed: seed, name: known)
          if own.matches(published.withBytes { Secret(copying: $0) }) { return true }
        }
      }
      return false
    }
  }
}
