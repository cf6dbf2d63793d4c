package import KeyhaulKit

extension BackupLayout {
  /// The name of the manifest, with the versions of iOS that write it.
  package var displayName: String {
    switch self {
    case .manifestDB: "Manifest.db (the format since iOS 10)"
    case .mbdb: "Manifest.mbdb (the format of iOS 4 to 9)"
    }
  }
}

extension Keybag.ClassKey {
  /// The purpose of the key, such as "items: when unlocked" or "files". "?" stands for an unknown class, and a dash for a
  /// class without a known purpose.
  package var purpose: String {
    guard let keyClass else { return "?" }
    if let protection = ProtectionClass(keyClass: keyClass) {
      return "items: \(protection.phrase)\(keyClass.generationSuffix)"
    }
    return keyClass.protectsFiles ? "files\(keyClass.generationSuffix)" : "–"
  }

  /// The keys that this class key is wrapped with, such as "password and device".
  package var wrapping: String {
    guard let wrap else { return "?" }
    let keys = [wrap.contains(.password) ? "password" : nil, wrap.contains(.device) ? "device" : nil].compactMap(\.self)
    return keys.isEmpty ? "nothing" : keys.joined(separator: " and ")
  }

  package var algorithm: String { keyType == .curve25519 ? "Curve25519" : "AES" }
}

extension Keybag {
  /// The iterations of both derivations, the slow one first: "10,000,000 + 10,000 iterations".
  package var iterationsText: String {
    let counts = [secondStep?.iterations, iterations].compactMap(\.self).map { HumanReadable.grouped($0) }
    return counts.isEmpty ? "no iterations" : "\(counts.joined(separator: " + ")) iterations"
  }
}
