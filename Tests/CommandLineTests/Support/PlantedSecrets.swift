import Foundation
import TestSupport

/// Secrets that must not be found, in any of the encodings in which they could be written.
struct PlantedSecrets: Sendable {
  /// The name and bytes of each secret.
  private(set) var secrets: [(name: String, bytes: [UInt8])] = []

  mutating func add(_ name: String, _ bytes: [UInt8]) { secrets.append((name, bytes)) }

  /// Returns the locations of the secrets, such as "secret 3 in b.tar".
  func locations(in files: [String: Data]) -> [String] {
    let search = MultiplePatternSearch(
      secrets.flatMap { secret in Self.encodings(of: secret.bytes).map { (secret.name, Array($0)) } })
    return files.sorted { $0.key < $1.key }.flatMap { file, data in
      search.names(in: data).sorted().map { "\($0) in \(file)" }
    }
  }

  /// Returns the first 24 bytes unchanged, in hexadecimal, and in base64.
  ///
  /// The base64 text of a secret inside other data depends on the secret's position. Therefore there are three such
  /// texts, which start at the first, second and third byte.
  static func encodings(of secret: [UInt8]) -> [Data] {
    let start = Array(secret.prefix(24))
    let shifted = (0..<3).map { shift in
      let bytes = Data(start.dropFirst(shift))
      // Only complete groups of three bytes, because the next bytes would change the last digits.
      return Data(bytes.prefix(bytes.count / 3 * 3).base64EncodedString().utf8)
    }
    return [Data(start), Data(start.hex.utf8), Data(start.hex.uppercased().utf8)] + shifted
  }
}

/// Searches data for many byte strings in one pass.
private struct MultiplePatternSearch {
  /// The patterns by their first two bytes.
  private var beginnings: [[(name: String, bytes: [UInt8])]] = Array(repeating: [], count: 1 << 16)

  init(_ patterns: [(String, [UInt8])]) {
    for (name, bytes) in patterns where bytes.count >= 2 {
      beginnings[Int(bytes[0]) << 8 | Int(bytes[1])].append((name, bytes))
    }
  }

  /// Returns the names of the patterns that the data contains.
  func names(in data: Data) -> Set<String> {
    var names: Set<String> = []
    data.withUnsafeBytes { bytes in
      for start in 0..<max(bytes.count - 1, 0) {
        for pattern in beginnings[Int(bytes[start]) << 8 | Int(bytes[start + 1])]
        where start + pattern.bytes.count <= bytes.count
          && pattern.bytes.indices.allSatisfy({ bytes[start + $0] == pattern.bytes[$0] })
        {
          names.insert(pattern.name)
        }
      }
    }
    return names
  }
}
