package import Basics
import KeychainFormats

/// An app of a virtual device and its access groups. New items of the app get the first group.
public struct DeviceApp: Sendable, Hashable {
  /// The app's name on the device. Calls select the app by this name.
  public var name: String
  /// The access groups whose items the app can use. New items get the first group.
  package var accessGroups: [String]

  /// Creates an app for a new device.
  package init(name: String, accessGroups: [String]) {
    self.name = name
    self.accessGroups = accessGroups
  }
}

/// A device's identity and counters, stored in `device.json` (format `virtual-device/1`).
///
/// The record does not state whether a passcode is set. The keybag shows it: if a passcode is set, it has a key of
/// class 12.
public struct DeviceRecord: Sendable, Equatable {
  static let format = "virtual-device/1"

  /// The device's name, which is also the name of its folder.
  public internal(set) var name: String
  /// The random device identifier: 8 hexadecimal digits, a hyphen and 16 digits. It survives an erase.
  package internal(set) var udid: String
  /// The random serial number: ten characters. It survives an erase.
  package internal(set) var serialNumber: String
  /// The model, such as `iPhone15,2`.
  package internal(set) var productType: String
  /// The iOS version.
  package internal(set) var productVersion: ProductVersion
  /// The iOS build, such as `22B83`, or `nil` if unknown.
  public internal(set) var build: String?
  /// The date when the device was created. It survives an erase.
  package internal(set) var created: KeychainDate
  /// Whether iCloud Keychain is on. If it is, backups contain tombstones.
  package internal(set) var isSyncing: Bool
  /// The number of consecutive wrong passcodes after which the device erases itself, or `nil` if it never does.
  package internal(set) var eraseAfterFailures: Int?
  /// The number of wrong passcodes since the last correct one. It is increased before a passcode is tried.
  package internal(set) var failedAttempts: Int
  /// The date of the last backup, or `nil` if there is none.
  package internal(set) var lastBackup: KeychainDate?
  /// A counter that is increased before any change that a plan depends on: items, the passcode, or an erase.
  package internal(set) var revisionCounter: Int64
  /// The installed apps in the order of their definition.
  package internal(set) var apps: [DeviceApp]
  /// Whether the device was created with a published device key, which anyone can compute. Devices of earlier
  /// versions do not record this. `DeviceSession.isDeviceKeyPublished` recognizes them too.
  package internal(set) var hasPublishedDeviceKey: Bool
  /// Unknown members of the file. They are kept when the file is rewritten.
  var unknownMembers = JSONObject()

  /// The revision as plans quote it, such as `r17`.
  package var revision: String { "r\(revisionCounter)" }
}

extension DeviceRecord {
  /// The known members of the file.
  private static let knownMembers: Set = [
    "format", "name", "udid", "serial", "product_type", "product_version", "build", "created", "syncing",
    "erase_after_failures", "failed_attempts", "last_backup", "revision", "apps", "published_hardware_key",
  ]

  /// The number of bytes by which the `device.json` of a new device must be smaller than the size limit, because its
  /// counters and dates grow.
  static let spareByteCount = 4096

  /// Rejects a record that would be too large to read. Only the apps can make it so large.
  ///
  /// - Throws: `.badFixture` with the limit.
  func requireAcceptableSize() throws(KeyhaulError) {
    let (count, limit) = (encoded().count, DeviceFile.record.sizeLimit - Self.spareByteCount)
    guard count <= limit else {
      throw KeyhaulError(
        .badFixture, name,
        "with its \(apps.count) apps, device.json has \(count) bytes; the limit for a new device is \(limit)")
    }
  }

  /// Returns the content of `device.json`.
  func encoded() -> [UInt8] {
    var object = JSONObject()
    object["format"] = .string(Self.format)
    object["name"] = .string(name)
    object["udid"] = .string(udid)
    object["serial"] = .string(serialNumber)
    object["product_type"] = .string(productType)
    object["product_version"] = .string(productVersion.text)
    if let build { object["build"] = .string(build) }
    object["created"] = .string(Timestamp.text(of: created))
    object["syncing"] = .boolean(isSyncing)
    if let eraseAfterFailures { object["erase_after_failures"] = .integer(Int64(eraseAfterFailures)) }
    object["failed_attempts"] = .integer(Int64(failedAttempts))
    if let lastBackup { object["last_backup"] = .string(Timestamp.text(of: lastBackup)) }
    object["revision"] = .integer(revisionCounter)
    let appValues = apps.map { app in
      var entry = JSONObject()
      entry["name"] = .string(app.name)
      entry["groups"] = .array(app.accessGroups.map(JSONValue.string))
      return JSONValue.sorted(entry)
    }
    object["apps"] = .array(appValues)
    if hasPublishedDeviceKey { object["published_hardware_key"] = .boolean(true) }
    for member in unknownMembers { object[member.key] = member.value }
    return JSONValue.sorted(object).bytes()
  }

  /// Decodes the content of `device.json`.
  ///
  /// - Throws: `.deviceDamaged` with the invalid member; `.unsupportedVersion`.
  init(decoding bytes: [UInt8], of device: String) throws(KeyhaulError) {
    let parseFailure = { (error: JSONParseError) in
      KeyhaulError(.deviceDamaged, device, "device.json: \(error.reason)")
    }
    let json = try converting(parseFailure) { () throws(JSONParseError) in try JSONValue(parsing: bytes) }
    let root = JSONCursor(json, path: DeviceFile.record.rawValue)
    let memberFailure = { (fault: JSONCursor.Fault) in
      KeyhaulError(.deviceDamaged, device, "\(fault.path) \(fault.reason)")
    }
    let format = try converting(memberFailure) { () throws(JSONCursor.Fault) in try root.member("format").string() }
    guard format == Self.format else {
      throw KeyhaulError(
        .unsupportedVersion, device, "device.json has the format \"\(format)\"; Keyhaul reads \"\(Self.format)\"")
    }
    self = try converting(memberFailure) { () throws(JSONCursor.Fault) in try Self(root) }
  }

  private init(_ root: JSONCursor) throws(JSONCursor.Fault) {
    name = try root.member("name").string()
    udid = try root.member("udid").string(where: DeviceIdentity.isUDID, "is not a device identifier")
    serialNumber = try root.member("serial").string()
    productType = try root.member("product_type").string()
    productVersion = try root.member("product_version").productVersion()
    build = try root.optional("build")?.string()
    created = try root.member("created").date()
    isSyncing = try root.member("syncing").boolean()
    eraseAfterFailures = try root.optional("erase_after_failures")?.count(atLeast: 1)
    failedAttempts = try root.member("failed_attempts").count(atLeast: 0)
    lastBackup = try root.optional("last_backup")?.date()
    revisionCounter = Int64(try root.member("revision").count(atLeast: 0))
    apps = []
    for app in try root.member("apps").elements() {
      var groups: [String] = []
      for group in try app.member("groups").elements() { groups.append(try group.string()) }
      apps.append(DeviceApp(name: try app.member("name").string(), accessGroups: groups))
    }
    hasPublishedDeviceKey = try root.optional("published_hardware_key")?.boolean() ?? false
    for (name, node) in try root.members() where !Self.knownMembers.contains(name) { unknownMembers[name] = node.value }
  }
}

extension DeviceRecord {
  /// Increases the revision. After the largest number, it starts again at 1, which does not happen in practice.
  mutating func incrementRevision() {
    revisionCounter = revisionCounter < Int64.max ? revisionCounter + 1 : 1
  }
}
