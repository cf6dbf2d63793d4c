package import KeyhaulKit

extension BackupLayout {
  /// The list of files, by its name and its time.
  package var words: String {
    switch self {
    case .manifestDB: "Manifest.db (iOS 10 and later)"
    case .mbdb: "Manifest.mbdb (iOS 4 to 9)"
    }
  }
}

extension Keybag.ClassKey {
  /// What the key is for: "items: when unlocked", "files".
  package var purpose: String {
    guard let keyClass else { return "?" }
    if let protection = ProtectionClass(keyClass: keyClass) {
      return "items: \(protection.phrase)\(keyClass.generationWords)"
    }
    return keyClass.protectsFiles ? "files\(keyClass.generationWords)" : "–"
  }

  /// What the key is wrapped with: "password and device".
  package var wrapping: String {
    guard let wrap else { return "?" }
    let names = [wrap.contains(.password) ? "password" : nil, wrap.contains(.device) ? "device" : nil]
    let known = names.compactMap(\.self)
    return known.isEmpty ? "nothing" : known.joined(separator: " and ")
  }

  package var algorithm: String { keyType == .curve25519 ? "Curve25519" : "AES" }
}

extension Keybag {
  /// Rounds of both derivations, the slow one first: "10,000,000 + 10,000 rounds".
  package var roundsWords: String {
    let rounds = [secondRound?.rounds, iterations].compactMap(\.self).map { Amounts.grouped($0) }
    return rounds.isEmpty ? "no iterations" : "\(rounds.joined(separator: " + ")) iterations"
  }
}
