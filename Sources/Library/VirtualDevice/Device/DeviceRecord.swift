package import Basics
import KeychainFormats

/// An app of a virtual device and the access groups it may use, the first of which its new items get.
public struct DeviceApp: Sendable, Hashable {
  /// The app's name on the device, by which calls are made for it.
  public var name: String
  /// The groups whose items it reads; a new item of its own gets the first.
  package var accessGroups: [String]

  /// Creates an app to be installed on a new device.
  package init(name: String, accessGroups: [String]) {
    self.name = name
    self.accessGroups = accessGroups
  }
}

/// What `device.json` says of a device: who it is, and its counters. Format `virtual-device/1`.
///
/// Whether a passcode is set is not in it: the keybag says so, by having a key of class 12.
public struct DeviceRecord: Sendable, Equatable {
  static let format = "virtual-device/1"

  /// The device's name, which is the name of its directory too.
  public internal(set) var name: String
  /// 8 hexadecimal digits, a hyphen, 16 digits; random, kept by an erase.
  package internal(set) var udid: String
  /// Ten characters, random, kept by an erase.
  package internal(set) var serialNumber: String
  /// The model, such as `iPhone15,2`.
  package internal(set) var productType: String
  /// The version of iOS.
  package internal(set) var productVersion: ProductVersion
  /// The build of iOS, such as `22B83`; `nil` if it is not known.
  public internal(set) var build: String?
  /// When the device was made; an erase leaves it.
  package internal(set) var created: KeychainDate
  /// Whether iCloud keychain is on; then tombstones go into backups.
  package internal(set) var isSyncing: Bool
  /// After how many wrong passcodes in a row the device erases itself; `nil` for never.
  package internal(set) var eraseAfterFailures: Int?
  /// Wrong passcodes since the last right one. Raised before the passcode is tried.
  package internal(set) var failedAttempts: Int
  /// When a backup was last made; `nil` for never.
  package internal(set) var lastBackup: KeychainDate?
  /// Raised before anything changes that a plan depends on: items, the passcode, an erase.
  package internal(set) var revisionCounter: Int64
  /// The installed apps in the order in which they were given.
  package internal(set) var apps: [DeviceApp]
  /// Whether the device was made with the hardware key of its description, which everybody can compute. A device that was
  /// made before this was recorded does not say so: `DeviceSession.isHardwareKeyPublished`.
  package internal(set) var hasPublishedHardwareKey: Bool
  /// Members of the file that this version knows nothing of; they survive rewriting.
  var others = JSONObject()

  /// The revision as plans quote it, such as `r17`.
  package var revision: String { "r\(revisionCounter)" }
}

extension DeviceRecord {
  /// The members that this version knows.
  private static let members: Set = [
    "format", "name", "udid", "serial", "product_type", "product_version", "build", "created", "syncing",
    "erase_after_failures", "failed_attempts", "last_backup", "revision", "apps", "published_hardware_key",
  ]

  /// How much of what is accepted of `device.json` a new device leaves free: its counters and dates grow.
  static let spareByteCount = 4096

  /// Refuses a record that could not be read again, which its apps alone can make so long.
  ///
  /// - Throws: `.badFixture` naming the limit.
  func requireRoom() throws(KeyhaulError) {
    let (count, limit) = (encoded().count, DeviceFile.record.sizeLimit - Self.spareByteCount)
    guard count <= limit else {
      throw KeyhaulError(
        .badFixture, name,
        "with its \(apps.count) apps, device.json has \(count) bytes; the limit for a new device is \(limit)")
    }
  }

  /// The bytes of `device.json`.
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
    if hasPublishedHardwareKey { object["published_hardware_key"] = .boolean(true) }
    for member in others { object[member.key] = member.value }
    return JSONValue.sorted(object).bytes()
  }

  /// Reads `device.json`.
  ///
  /// - Throws: `.deviceDamaged` naming the member; `.unsupportedVersion`.
  init(decoding bytes: [UInt8], of device: String) throws(KeyhaulError) {
    let root: JSONCursor
    do throws(JSONParseError) {
      root = JSONCursor(try JSONValue(parsing: bytes), path: DeviceFile.record.rawValue)
    } catch {
      let reason = "device.json: \(error.reason)"
      throw KeyhaulError(.deviceDamaged, device, reason)
    }
    let format: String
    do throws(JSONCursor.Fault) {
      format = try root.member("format").string()
      if format == Self.format {
        self = try Self(root)
        return
      }
    } catch {
      throw KeyhaulError(.deviceDamaged, device, "\(error.path) \(error.reason)")
    }
    let reason = "device.json has the format \"\(format)\"; Keyhaul reads \"\(Self.format)\""
    throw KeyhaulError(.unsupportedVersion, device, reason)
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
    eraseAfterFailures = try root.optional("erase_after_failures")?.count(from: 1)
    failedAttempts = try root.member("failed_attempts").count(from: 0)
    lastBackup = try root.optional("last_backup")?.date()
    revisionCounter = Int64(try root.member("revision").count(from: 0))
    apps = []
    for app in try root.member("apps").elements() {
      var groups: [String] = []
      for group in try app.member("groups").elements() { groups.append(try group.string()) }
      apps.append(DeviceApp(name: try app.member("name").string(), accessGroups: groups))
    }
    hasPublishedHardwareKey = try root.optional("published_hardware_key")?.boolean() ?? false
    for (name, node) in try root.members() where !Self.members.contains(name) { others[name] = node.value }
  }
}

extension DeviceRecord {
  /// Wraps round to 1 at the end of its range, which no device lives to see.
  mutating func raiseRevision() {
    revisionCounter = revisionCounter < Int64.max ? revisionCounter + 1 : 1
  }
}
