public import Basics
public import KeychainFormats

/// What a person must do before an item opens.
public enum AccessConstraint: String, Sendable, CaseIterable {
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
  public static let format = "device-fixture/1"
  /// The most bytes a fixture may have.
  public static let maximumByteCount = 512 << 20
  /// The most values in it: some dozen for each of a million items.
  private static let maximumValueCount = 20_000_000

  /// One item, with what guards it beside its protection class.
  public struct Item: Sendable {
    /// Has its protection, its secret and, for a key in hardware, its token identifier.
    public var item: KeychainItem
    /// What a person must do before the item opens; empty for an item that asks nobody.
    public var accessConstraints: [AccessConstraint]
  }

  /// Identifiers and keys of a device with published keys derive from it and from the device's name (`Keys.published`).
  public var seed: Int64
  /// When the device was made; also the date of items that have none.
  public var created: KeychainDate
  /// The name of a device that is made from it, unless another is given.
  public var name: DeviceName
  /// The model and the version of iOS.
  public var identity: DeviceIdentity
  /// UTF-8; `nil` for a device without a passcode.
  public var passcode: SensitiveBytes?
  /// The apps with their access groups.
  public var apps: [DeviceApp]
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
  public init(
    decoding bytes: [UInt8], from source: String, acceptingAtMost limit: Int = Self.maximumByteCount
  ) throws(VirtualDeviceError) {
    guard bytes.count <= limit else {
      // It may have been read no further.
      let reason = "it has more than \(Amounts.bytes(limit)), which is the limit"
      throw VirtualDeviceError(.badFixture, source, reason)
    }
    let root: JSONNode
    do throws(JSONFault) {
      let document = try JSONValue(parsing: bytes, acceptingAtMost: Self.maximumValueCount, rereading: "items")
      root = JSONNode(document, path: "")
    } catch {
      throw VirtualDeviceError(.badFixture, source, error.reason)
    }
    let format: String
    do throws(JSONNode.Fault) {
      if try root.optional("format") == nil { try root.require(Self.requiredMembers) }
      format = try root.member("format").string()
      if format == Self.format {
        self = try Self(root)
        return
      }
    } catch {
      throw VirtualDeviceError(
        .badFixture, source, "\(error.path.isEmpty ? "the document" : error.path) \(error.reason)")
    }
    let reason = "its format is \"\(format)\"; Keyhaul reads \"\(Self.format)\""
    throw VirtualDeviceError(.unsupportedVersion, source, reason)
  }
}
