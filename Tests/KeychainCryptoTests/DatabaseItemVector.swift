import Basics
import KeychainFormats
import TestSupport

@testable import KeychainCrypto

extension SensitiveBytes {
  convenience init(_ vector: TestVectors) throws { self.init(copying: try vector.bytes) }
}

/// An item in the vectors with all inputs of its encryption.
struct DatabaseItemVector {
  let vector: TestVectors
  let name: String
  let item: KeychainItem
  let accessControl: ItemAccessControl
  let wrapping: DatabaseKeyWrapping
  let version: DatabaseItemBlob.Version
  let storedClass: KeyClass

  static func all() throws -> [DatabaseItemVector] {
    try TestVectors.databaseItems()["item_blobs"].elements.map(DatabaseItemVector.init)
  }

  init(_ vector: TestVectors) throws {
    let inputs = try vector["inputs"]
    self.vector = vector
    name = try vector["name"].string
    let kind = ItemKind(rawValue: try vector["table"].string) ?? .genericPassword
    item = try KeychainItem(
      kind: kind,
      attributes: inputs["attributes"].members.reduce(into: [:]) { attributes, member in
        attributes[AttributeCode(rawValue: member.key)] = try member.value.property
      },
      secrets: inputs["secret"].members.reduce(into: [:]) { secrets, member in
        secrets[AttributeCode(rawValue: member.key)] = try SensitiveBytes(member.value["hex"])
      })
    accessControl = try ItemAccessControl(members: inputs["access_control"].propertyDictionary)
    wrapping =
      switch try vector["pad"].string {
      case "ff": .simulator(.sinceIOS13)
      case "08": .simulator(.upToIOS12)
      default: .classKey
      }
    version = try vector["version"].integer == 7 ? .v7 : .v8
    storedClass = KeyClass(rawValue: UInt32(try inputs["keyclass"].integer))
  }

  /// The item's class, without a key generation.
  var keyClass: KeyClass { storedClass.withoutGeneration }

  var blob: [UInt8] { get throws { try vector["expect"]["blob"].bytes } }

  func keys() throws -> DatabaseKeys {
    let inputs = try vector["inputs"]
    return try DatabaseKeys(
      wrappedMetadataKeys: [keyClass: SensitiveBytes(vector["expect"]["metadatakeys_data"])],
      classKeys: inputs.has("class_key") ? [keyClass: SensitiveBytes(inputs["class_key"])] : [:])
  }

  func randomValues() throws -> DatabaseItemRandomValues {
    let inputs = try vector["inputs"]
    let nonces = try inputs["nonces"]
    return DatabaseItemRandomValues(
      attributesKey: try Secret(inputs["metadata_key"]), secretKey: try Secret(inputs["secret_key"]),
      nonces: [try nonces["metadata_key"].bytes, try nonces["attributes"].bytes, try nonces["secret"].bytes],
      tamperCheck: try inputs["tamper_check"].string)
  }
}

/// Returns whether two items have equal attributes and secrets.
func isSame(_ left: KeychainItem?, _ right: KeychainItem?) -> Bool {
  guard let left, let right else { return left == nil && right == nil }
  return left.kind == right.kind && left.attributes == right.attributes
    && left.secrets.mapValues(\.revealed) == right.secrets.mapValues(\.revealed)
}
