package import Basics
import KeychainFormats

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension DeviceFixture {
  /// The required members. All others have defaults.
  static let requiredMembers = ["format", "created", "device", "items"]
  /// The largest accepted number of JSON values: 20 for each of a million items, which usually have about a dozen.
  private static let maximumValueCount = 20_000_000

  /// Decodes a fixture.
  ///
  /// - Parameters:
  ///   - bytes: The fixture as JSON in UTF-8.
  ///   - source: The name for errors: a path or the name of a bundled fixture.
  ///   - limit: The largest accepted size, in bytes.
  /// - Throws: `.badFixture` for an invalid or unknown member, with its JSON path such as `items[3].attributes.acct`;
  ///   `.unsupportedVersion` for another format.
  package init(
    decoding bytes: [UInt8], from source: String, acceptingAtMost limit: Int = Self.maximumByteCount
  ) throws(KeyhaulError) {
    guard bytes.count <= limit else {
      // The file may have been read only up to the limit, so its real size is unknown.
      let reason = "it has more than \(HumanReadable.bytes(limit)), which is the limit"
      throw KeyhaulError(.badFixture, source, reason)
    }
    let parseFailure = { (error: JSONParseError) in KeyhaulError(.badFixture, source, error.reason) }
    let document = try converting(parseFailure) { () throws(JSONParseError) in
      try JSONValue(parsing: bytes, acceptingAtMost: Self.maximumValueCount, decodingLazily: "items")
    }
    let root = JSONCursor(document, path: "")
    let memberFailure = { (fault: JSONCursor.Fault) in
      KeyhaulError(.badFixture, source, "\(fault.path.isEmpty ? "the document" : fault.path) \(fault.reason)")
    }
    let format = try converting(memberFailure) { () throws(JSONCursor.Fault) -> String in
      // In a document without a format, the error lists all missing members, not only the format.
      if try root.optional("format") == nil { try root.require(Self.requiredMembers) }
      return try root.member("format").string()
    }
    guard format == Self.format else {
      throw KeyhaulError(.unsupportedVersion, source, "its format is \"\(format)\"; Keyhaul reads \"\(Self.format)\"")
    }
    self = try converting(memberFailure) { () throws(JSONCursor.Fault) in try Self(root) }
  }
}

extension DeviceFixture {
  init(_ root: JSONCursor) throws(JSONCursor.Fault) {
    try root.allow(only: ["format", "seed", "created", "device", "apps", "items"])
    try root.require(Self.requiredMembers)
    seed = Int64(try root.optional("seed")?.count(atLeast: 0) ?? Int(Self.standardSeed))
    created = try root.member("created").date()
    let device = try root.member("device")
    try device.allow(only: ["name", "product_type", "product_version", "passcode"])
    name = try device.member("name").deviceName()
    identity = try device.deviceIdentity()
    passcode = try device.optional("passcode")?.passcode()
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
      let app = try node.app()
      guard names.insert(app.name).inserted else { throw node.fault("is the second app with this name") }
      apps.append(app)
    }
    return apps
  }
}

extension DeviceFixture.Item {
  /// Attributes that cannot be set in the member `attributes`. The members `protection`, `secret`, `access_control` and
  /// `token` specify them, or the database assigns them.
  private static let reservedCodes: Set<AttributeCode> = [
    .protection, .valueData, .accessControl, .tokenID, .rowID, .digest, .primaryKeyDigest, .encryptedData,
  ]

  init(_ node: JSONCursor, created: KeychainDate) throws(JSONCursor.Fault) {
    try node.allow(only: ["kind", "protection", "attributes", "secret", "access_control", "token"])
    try node.require(["kind", "protection", "attributes"])
    var item = KeychainItem(kind: try node.member("kind").itemKind())
    item.protection = try node.member("protection").protectionClass()
    item[.creationDate] = .date(created)
    item[.modificationDate] = .date(created)
    try Self.addAttributes(node.member("attributes"), to: &item)
    if let secret = try node.optional("secret") { item.secret = SensitiveBytes(copying: try secret.secretBytes()) }
    if let token = try node.optional("token") { item[.tokenID] = .string(try token.nonEmptyString()) }
    self.item = item
    accessConstraints = try node.optional("access_control")?.accessConstraints() ?? []
  }

  /// Adds the attributes of an object, whose keys are codes or Apple's constants.
  private static func addAttributes(_ node: JSONCursor, to item: inout KeychainItem) throws(JSONCursor.Fault) {
    var seenCodes: Set<AttributeCode> = []
    for (key, value) in try node.members() {
      guard let code = AttributeTable.definition(named: key, in: item.kind)?.code else {
        throw value.fault("is not an attribute of a \(item.kind.reportName)")
      }
      guard !reservedCodes.contains(code) else { throw value.fault("cannot be set among the attributes") }
      guard seenCodes.insert(code).inserted else { throw value.fault("occurs a second time, under its other name") }
      item[code] = try value.attributeValue()
    }
  }
}

// MARK: Parts of a device

extension JSONCursor {
  func deviceName() throws(Fault) -> DeviceName {
    let text = try string()
    do throws(KeyhaulError) { return try DeviceName(text) } catch { throw fault(error.reason) }
  }

  /// Returns the model and the iOS version of a device.
  fileprivate func deviceIdentity() throws(Fault) -> DeviceIdentity {
    let productType = try optional("product_type")?.nonEmptyString()
    let productVersion = try optional("product_version")?.productVersion()
    return DeviceIdentity(
      productType: productType ?? DeviceIdentity.standardProductType, productVersion: productVersion ?? .standard)
  }

  fileprivate func passcode() throws(Fault) -> SensitiveBytes {
    let text = try string(where: { !$0.isEmpty }, "is empty; leave it out for a device without a passcode")
    return SensitiveBytes(copying: Array(text.utf8))
  }

  fileprivate func app() throws(Fault) -> DeviceApp {
    try allow(only: ["name", "groups"])
    try require(["name", "groups"])
    var groups: [String] = []
    for group in try member("groups").elements() { groups.append(try group.nonEmptyString()) }
    guard !groups.isEmpty else { throw try member("groups").fault("is empty") }
    return DeviceApp(name: try member("name").nonEmptyString(), accessGroups: groups)
  }
}

// MARK: Parts of an item

extension JSONCursor {
  fileprivate func itemKind() throws(Fault) -> ItemKind {
    let name = try string()
    guard let kind = ItemKind.allCases.first(where: { $0.reportName == name }) else {
      let knownNames = ItemKind.allCases.map(\.reportName).joined(separator: ", ")
      throw fault("is not a kind of item; known: \(knownNames)")
    }
    return kind
  }

  fileprivate func protectionClass() throws(Fault) -> ProtectionClass {
    guard let protection = ProtectionClass(named: try string()) else {
      let knownNames = ProtectionClass.allCases.map { "\($0.word) (\($0.rawValue))" }.joined(separator: ", ")
      throw fault("is not a protection class; known: \(knownNames)")
    }
    return protection
  }

  fileprivate func accessConstraints() throws(Fault) -> [AccessConstraint] {
    var constraints: [AccessConstraint] = []
    for element in try elements() {
      guard let constraint = AccessConstraint(rawValue: try element.string()) else {
        let knownNames = AccessConstraint.allCases.map(\.rawValue).joined(separator: ", ")
        throw element.fault("is not a known constraint; known: \(knownNames)")
      }
      constraints.append(constraint)
    }
    guard !constraints.isEmpty else { throw fault("is empty") }
    return constraints
  }

  func nonEmptyString() throws(Fault) -> String { try string(where: { !$0.isEmpty }, "is empty") }

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
