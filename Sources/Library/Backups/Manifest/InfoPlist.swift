package import Basics
package import KeychainFormats

/// The `Info.plist` of a backup: what the computer recorded about the device and its apps, as XML or binary. All values
/// are untrusted.
///
/// Sources: libimobiledevice, `idevicebackup2.c`; backups of Finder for `iTunesMetadata`.
package struct InfoPlist: Sendable {
  /// The device as the computer describes it; not verified.
  package let device: BackupDevice
  /// The version of iTunes or Finder, such as `12.12.9`, or `nil` if another program created the backup.
  package let iTunesVersion: String?
  /// The version of macOS, if Finder created the backup.
  package let macOSVersion: String?
  /// The model name, such as `iPhone 14 Pro`.
  package let productName: String?
  /// The date of the last backup of the device on this computer.
  package let lastBackup: KeychainDate?
  /// The identifiers of the installed apps.
  package let installedApps: [String]
  /// The app groups of each app, by app identifier.
  package let groups: [String: [String]]
  /// The App Store property lists of the apps, with their identifiers.
  private let storePropertyLists: [(identifier: String, bytes: [UInt8])]
  /// The size of the file in bytes.
  private let byteCount: Int

  /// Reads an `Info.plist`, XML or binary.
  ///
  /// - Throws: `.damaged` if it is not a property list or is truncated, `.overLimit` if it exceeds a limit.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    let root = try rootDictionary(of: bytes, in: MetadataFile.info.path)
    device = BackupDevice(
      identifier: root["Target Identifier"]?.stringValue ?? root["Unique Identifier"]?.stringValue,
      name: root["Device Name"]?.stringValue ?? root["Display Name"]?.stringValue,
      productType: root["Product Type"]?.stringValue, productVersion: root["Product Version"]?.stringValue,
      buildVersion: root["Build Version"]?.stringValue, serialNumber: root["Serial Number"]?.stringValue)
    iTunesVersion = root["iTunes Version"]?.stringValue
    macOSVersion = root["macOS Version"]?.stringValue
    productName = root["Product Name"]?.stringValue
    lastBackup = root["Last Backup Date"]?.dateValue
    installedApps = (root["Installed Applications"]?.arrayValue ?? []).compactMap(\.stringValue)
    groups = Self.groups(in: root["Applications"]?.dictionaryValue)
    storePropertyLists = (root["Applications"]?.dictionaryValue?.entries ?? []).compactMap { entry in
      guard let identifier = entry.key.stringValue,
        let bytes = entry.value.dictionaryValue?["iTunesMetadata"]?.dataValue
      else { return nil }
      return (identifier, bytes)
    }
    byteCount = bytes.count
  }

  /// An app's metadata from the App Store.
  package struct StoreApp: Sendable, Hashable {
    /// The app's name, or `nil` if there is none.
    package let name: String?
    /// The store's number of the app's category, such as 6015 for Finance, or `nil` if there is none.
    package let genre: Int64?
  }

  /// The maximum number of apps whose metadata is read.
  static let maximumAppCount = 10_000

  /// The App Store's metadata of each app, by app identifier.
  ///
  /// The total size of the metadata that is read is limited to the size of the file. This limits the work if a crafted
  /// file references one property list from many apps. Some of these apps then get no metadata.
  package var storeApps: [String: StoreApp] {
    var apps: [String: StoreApp] = [:]
    var remainingByteCount = byteCount
    for (identifier, bytes) in storePropertyLists.prefix(Self.maximumAppCount) where bytes.count <= remainingByteCount {
      remainingByteCount -= bytes.count
      guard let propertyList = try? Self.storePropertyList(bytes) else { continue }
      let name = propertyList["itemName"]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
      apps[identifier] = StoreApp(name: name, genre: propertyList["genreId"]?.integerValue)
    }
    return apps
  }

  /// The names of apps in the store, by identifier.
  package var storeNames: [String: String] { storeApps.compactMapValues(\.name) }

  private static func storePropertyList(_ bytes: [UInt8]) throws(FormatError) -> PropertyDictionary? {
    let root = XMLPlist.isXML(bytes) ? try XMLPlist.decode(bytes) : try BinaryPlist.decode(bytes, limits: .small)
    return root.dictionaryValue
  }

  /// Returns the app groups in the entries of `Applications`, by app identifier. Computers write the group containers
  /// of an app, or its entitlement for groups.
  package static func groups(in applications: PropertyDictionary?) -> [String: [String]] {
    var groups: [String: [String]] = [:]
    for entry in applications?.entries ?? [] {
      guard let identifier = entry.key.stringValue, let app = entry.value.dictionaryValue else { continue }
      let containers = app["GroupContainers"]
      let entitled = app["Entitlements"]?.dictionaryValue?["com.apple.security.application-groups"]
      let names =
        (containers?.dictionaryValue?.entries.compactMap(\.key.stringValue) ?? [])
        + [containers, entitled].flatMap { $0?.arrayValue ?? [] }.compactMap(\.stringValue)
      if !names.isEmpty { groups[identifier, default: []] += names }
    }
    return groups
  }
}
