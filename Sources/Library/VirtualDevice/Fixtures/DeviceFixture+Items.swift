import Basics
import KeychainFormats

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension DeviceFixture {
  /// Without these there is nothing to make; the others have a value where they are left out.
  static let requiredMembers = ["format", "created", "device", "items"]

  init(_ root: JSONNode) throws(JSONNode.Fault) {
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

  init(_ node: JSONNode, created: KeychainDate) throws(JSONNode.Fault) {
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
          throw element.fault("is not known; the known ones are \(known)")
        }
        accessConstraints.append(constraint)
      }
      guard !accessConstraints.isEmpty else { throw list.fault("is empty") }
    }
  }
}

extension JSONNode {
  func nonEmptyString() throws(Fault) -> String { try string(where: { !$0.isEmpty }, "is empty") }

  func deviceName() throws(Fault) -> DeviceName {
    let text = try string()
    do throws(VirtualDeviceError) { return try DeviceName(text) } catch { throw fault(error.reason) }
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
      default: throw node.fault("is not known; the known ones are base64, date")
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
    default: throw node.fault("is not known; the known ones are text, base64")
    }
  }

  func base64() throws(Fault) -> [UInt8] {
    guard let bytes = Data(base64Encoded: try string()) else { throw fault("is not base64") }
    return Array(bytes)
  }
}
