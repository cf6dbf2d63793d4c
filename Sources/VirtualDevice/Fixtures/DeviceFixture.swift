public import KeychainFormats

/// What a person must do before an item opens.
public enum AccessConstraint: String, Sendable, CaseIterable {
  case userPresence = "user-presence"
  case biometryAny = "biometry-any"
  case biometryCurrentSet = "biometry-current-set"
  case devicePasscode = "device-passcode"
  case privateKeyUsage = "private-key-usage"
}

/// A description of a device and its keychain, from which the same device is made each time. Format `device-fixture/1`.
///
/// A fixture's passcode and secrets stand in it in clear: nothing for real use.
public struct DeviceFixture: Sendable {
  public static let format = "device-fixture/1"
  /// The most bytes a fixture may have.
  public static let largestSize = 64 << 20

  /// One item, with what guards it beside its protection class.
  public struct Item: Sendable {
    /// Has its protection, its secret and, for a key in hardware, its token identifier.
    public var item: KeychainItem
    public var accessConstraints: [AccessConstraint]
  }

  /// Identifiers and keys of a device with published keys derive from it and from the device's name (`Keys.published`).
  public var seed: Int64
  /// When the device was made; also the date of items that have none.
  public var created: KeychainDate
  public var name: DeviceName
  public var identity: DeviceIdentity
  /// UTF-8; `nil` for a device without a passcode.
  public var passcode: SensitiveBytes?
  public var apps: [DeviceApp]
  public var items: [Item]
}

extension DeviceFixture {
  /// Reads a fixture.
  ///
  /// - Parameter source: What to call it in errors: a path or a bundled name.
  /// - Throws: `.badFixture` naming the place, such as `items[3].attributes.acct`; unknown members are errors.
  ///   `.unsupportedVersion`.
  public init(
    decoding bytes: [UInt8], from source: String, acceptingAtMost limit: Int = Self.largestSize
  ) throws(VirtualDeviceError) {
    guard bytes.count <= limit else {
      let reason = "it has \(bytes.count) bytes; at most \(limit) are accepted"
      throw VirtualDeviceError(.badFixture, source, reason)
    }
    let root: JSONNode
    do throws(JSONFault) {
      root = JSONNode(try JSONValue(parsing: bytes), path: "")
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
    let reason = "its format is \"\(format)\"; \"\(Self.format)\" is read"
    throw VirtualDeviceError(.unsupportedVersion, source, reason)
  }
}
