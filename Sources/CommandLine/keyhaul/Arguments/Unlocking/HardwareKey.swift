import KeyhaulKit

/// The hardware key that may have made a backup, and where it is from. Whether it did is for the backup's items to prove.
final class HardwareKey: Sendable {
  enum Source: Sendable {
    /// The user's word for it: `--device-key-file` or `--device-key-fd`.
    case given
    /// A device that the user named beside the archive.
    case named
    /// A device of the home directory that calls itself as the backup calls its maker.
    case homeDirectory(name: String, isPublished: Bool)
  }

  let source: Source
  let key: DeviceKey
  /// The key that would be used had the user given none.
  let otherwise: HardwareKey?

  init(_ source: Source, _ key: DeviceKey, otherwise: HardwareKey? = nil) {
    self.source = source
    self.otherwise = otherwise
    self.key = key
  }

  /// Whether nobody said that the key is the maker's.
  var isGuess: Bool { if case .given = source { false } else { true } }

  /// The name of the device of the home directory, where it was found there.
  var homeDevice: String? { if case .homeDirectory(let name, _) = source { name } else { nil } }

  /// Whether it is known that everybody can compute the key.
  var isPublished: Bool { if case .homeDirectory(_, let isPublished) = source { isPublished } else { false } }
}

/// Seeds that everybody has: with the name of a device they give the published hardware key.
enum PublishedSeeds {
  static let all = [BundledFixtures.seed]
}
