package import Basics
import KeychainCrypto
public import KeychainFormats

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An authentication requirement for the use of an item.
package enum AccessConstraint: String, Sendable, CaseIterable {
  /// Biometry or the passcode.
  case userPresence = "user-presence"
  /// Any enrolled biometry, including later enrollments.
  case biometryAny = "biometry-any"
  /// The currently enrolled biometry only.
  case biometryCurrentSet = "biometry-current-set"
  /// The device's passcode.
  case devicePasscode = "device-passcode"
  /// Signing and key agreement with a private key.
  case privateKeyUsage = "private-key-usage"
}

/// A description of a device and its keychain (format `device-fixture/1`), from which the same device can be created
/// repeatedly.
///
/// The passcode and the secrets in it are unencrypted. Do not use a fixture for real data.
public struct DeviceFixture: Sendable {
  /// The identifier of the format, as in a fixture and its schema.
  package static let format = "device-fixture/1"
  /// The largest accepted size of a fixture, in bytes.
  package static let maximumByteCount = 512 << 20
  /// The largest accepted number of JSON values: about a dozen for each of a million items.
  private static let maximumValueCount = 20_000_000

  /// An item and its access constraints.
  public struct Item: Sendable {
    /// The item with its protection class, its secret and, for a key in hardware, its token identifier.
    public var item: KeychainItem
    /// The authentication requirements; empty if the item needs no authentication.
    package var accessConstraints: [AccessConstraint]
  }

  /// The seed for the identifiers and keys of a device with published keys (`Keys.published`), together with the
  /// device's name.
  package var seed: Int64
  /// The date when the device was created, and the default date of its items.
  package var created: KeychainDate
  /// The default name of a device created from the fixture.
  public var name: DeviceName
  /// The model and the iOS version.
  package var identity: DeviceIdentity
  /// The passcode as UTF-8, or `nil` if the device has none.
  package var passcode: SensitiveBytes?
  /// The apps and their access groups.
  package var apps: [DeviceApp]
  /// The items in the order in which they are added.
  public var items: [Item]
}

extension DeviceFixture {
  /// Decodes a fixture.
  ///
  /// - Parameters:
  ///   - bytes: The fixture as JSON in UTF-8.
  ///   - source: The name for errors: a path or the name of a bundled fixture.
  ///   - limit: The largest accepted size, in bytes.
  /// - Throws: `.badFixture` with the JSON path, such as `items[3].attributes.acct`, also for unknown members;
  ///   `.unsupportedVersion`.
  package init(
    decoding bytes: [UInt8], from source: String, acceptingAtMost limit: Int = Self.maximumByteCount
  ) throws(KeyhaulError) {
    guard bytes.count <= limit else {
      // The file may have been read only up to the limit.
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
  /// The required members. All others have defaults.
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

    apps = try Self.apps(in: root)
    items = []
    for node in try root.member("items").elements() {
      var fixtureItem = try Item(node, created: created)
      fixtureItem.item.pack()
      items.append(fixtureItem)
    }
  }

  private static func apps(in root: JSONCursor) throws(JSONCursor.Fault) -> [DeviceApp] {
    var apps: [DeviceApp] = []
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
    return apps
  }
}

extension DeviceFixture.Item {
  /// Attributes that the members `protection`, `secret`, `access_control` and `token` specify, or that the database
  /// assigns.
  private static let reservedCodes: Set<AttributeCode> = [
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
    var seenCodes: Set<AttributeCode> = []
    for (key, value) in try node.member("attributes").members() {
      guard let code = AttributeTable.definition(named: key, in: kind)?.code else {
        throw value.fault("is not an attribute of a \(kind.reportName)")
      }
      guard !Self.reservedCodes.contains(code) else { throw value.fault("cannot be set among the attributes") }
      guard seenCodes.insert(code).inserted else { throw value.fault("occurs a second time, under its other name") }
      item[code] = try value.attributeValue()
    }
    if let secret = try node.optional("secret") { item.secret = SensitiveBytes(copying: try secret.secretBytes()) }
    if let token = try node.optional("token") { item[.tokenID] = .string(try token.nonEmptyString()) }

    accessConstraints = []
    if let constraints = try node.optional("access_control") {
      for element in try constraints.elements() {
        guard let constraint = AccessConstraint(rawValue: try element.string()) else {
          let known = AccessConstraint.allCases.map(\.rawValue).joined(separator: ", ")
          throw element.fault("is not a known constraint; known: \(known)")
        }
        accessConstraints.append(constraint)
      }
      guard !accessConstraints.isEmpty else { throw constraints.fault("is empty") }
    }
  }
}

extension JSONCursor {
  func nonEmptyString() throws(Fault) -> String { try string(where: { !$0.isEmpty }, "is empty") }

  func deviceName() throws(Fault) -> DeviceName {
    let text = try string()
    do throws(KeyhaulError) { return try DeviceName(text) } catch { throw fault(error.reason) }
  }

  /// Returns the value of an attribute: a string, a whole number, `{"base64": …}` or `{"date": …}`.
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

  /// Returns the bytes of `{"text": …}` or `{"base64": …}`.
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
  /// The source of the hardware key, the class keys and the identifiers of a device that is created from a fixture.
  public enum Keys: Sendable, Hashable {
    /// Random keys, known only to the device.
    case random
    /// Keys derived from the fixture's seed and the device's name. Anyone can compute them, so a backup's device-bound
    /// items can be decrypted wherever a device of the same name is created.
    case published
  }

  /// The seed of a fixture that does not specify one.
  package static let standardSeed: Int64 = 0

  static func publishedRandomness(seed: Int64, name: String) -> SeededRandomSource {
    SeededRandomSource(seed: "\(format) \(seed) \(name)")
  }

  /// Returns the hardware key of a device with `Keys.published` for a seed and a name. The identifier and the serial
  /// number are generated before it, in the same order as in `VirtualDevice.initialize`.
  static func publishedHardware(seed: Int64, name: String) throws(DataProtectionError) -> HardwareUID {
    let random = publishedRandomness(seed: seed, name: name)
    _ = try DeviceIdentity.randomUDID(random)
    _ = try DeviceIdentity.randomSerialNumber(random)
    return try HardwareUID(from: random)
  }
}

extension DeviceSession {
  /// Returns whether anyone can compute the device's hardware key, so that device-bound items are not protected by it.
  ///
  /// A device with published keys records this. For older devices, the key is compared with the keys of known seeds and
  /// the device's name.
  ///
  /// - Parameter seeds: The seeds of published fixtures, in addition to `DeviceFixture.standardSeed`.
  /// - Throws: `.underlying` if the cryptographic library fails.
  package func isHardwareKeyPublished(knownSeeds seeds: some Sequence<Int64> = []) throws(KeyhaulError) -> Bool {
    if record.hasPublishedHardwareKey { return true }
    return try translatingErrors(about: name) { () throws(DataProtectionError) in
      let deviceHardware = hardware.withBytes { Secret(copying: $0) }
      for seed in [DeviceFixture.standardSeed] + seeds {
        for candidate in name == record.name ? [name] : [name, record.name] {
          let published = try DeviceFixture.publishedHardware(seed: seed, name: candidate)
          if deviceHardware.matches(published.withBytes { Secret(copying: $0) }) { return true }
        }
      }
      return false
    }
  }
}
