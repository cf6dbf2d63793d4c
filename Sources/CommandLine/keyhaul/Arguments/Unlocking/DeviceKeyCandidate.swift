import KeyhaulKit

/// A device key that may belong to a backup's source device. Only the items of the backup can prove this.
final class DeviceKeyCandidate: Sendable {
  enum Source: Sendable {
    /// The user gave it with `--device-key-file` or `--device-key-fd`.
    case given
    /// The key of a device that the user named in the same command as the backup.
    case named
    /// The key of a virtual device with the identifier that the backup states.
    case deviceFolder(name: String, isPublished: Bool)
  }

  let source: Source
  let key: DeviceKey
  /// The key to try if this key decrypts nothing.
  let fallback: DeviceKeyCandidate?

  init(_ source: Source, _ key: DeviceKey, fallback: DeviceKeyCandidate? = nil) {
    self.source = source
    self.fallback = fallback
    self.key = key
  }

  /// Whether Keyhaul only assumes that this is the source device's key, because the user did not give it.
  var isGuess: Bool { if case .given = source { false } else { true } }

  /// The name of the virtual device that the key belongs to; `nil` if Keyhaul did not find the key in the device folder.
  var virtualDeviceName: String? { if case .deviceFolder(let name, _) = source { name } else { nil } }

  /// Whether anyone can compute the key.
  var isPublished: Bool { if case .deviceFolder(_, let isPublished) = source { isPublished } else { false } }
}

/// The seeds that are published. Together with a device's name, they determine its device key.
enum WellKnownSeeds {
  static let all = [BundledFixtures.seed]
}
