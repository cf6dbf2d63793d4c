package import Basics

/// A Simulator's key store, which "wraps" a key by appending eight equal bytes.
///
/// Source: Apple `SecAKSObjCWrappers.m`, `mockaks.m` (iOS 13 and later) and `SecKeybagSupport.c` (earlier). The later
/// format was seen in 200 rows that Apple's code wrote. No database of a real Simulator was available.
package enum SimulatorKeyStore: Sendable, Hashable, CaseIterable {
  /// Simulators up to iOS 12.
  case upToIOS12
  /// Simulators since iOS 13, which reject the earlier format.
  case sinceIOS13

  static let padByteCount = 8

  var padByte: UInt8 {
    switch self {
    case .upToIOS12: 0x08
    case .sinceIOS13: 0xFF
    }
  }

  /// Detects the key store that wrapped a key from the appended bytes; `nil` if no Simulator's key store did. A
  /// device's wrap looks like a Simulator's once in 2^63 cases.
  package init?(detectedIn wrapped: SensitiveBytes) {
    let store = wrapped.withBytes { bytes -> SimulatorKeyStore? in
      guard bytes.count >= Self.padByteCount else { return nil }
      return Self.allCases.first { store in bytes.suffix(Self.padByteCount).allSatisfy { $0 == store.padByte } }
    }
    guard let store else { return nil }
    self = store
  }

  func wrap(_ key: borrowing Secret) -> SensitiveBytes {
    key.withBytes { bytes in
      SensitiveBytes(count: bytes.count + Self.padByteCount) { target in
        target.copyMemory(from: bytes)
        for index in bytes.count..<target.count { target[index] = padByte }
      }
    }
  }
}
