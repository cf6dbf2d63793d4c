package import Basics
import KeychainFormats

/// What stands for a key store in a Simulator: it wraps a key by putting eight equal bytes behind it.
///
/// Source: Apple `SecAKSObjCWrappers.m`, `mockaks.m` (iOS 13 and later) and `SecKeybagSupport.c` (before); the later form
/// seen in 200 rows that Apple's code wrote. No database of a real Simulator was available.
public enum SimulatorKeyStore: Sendable, Hashable, CaseIterable {
  /// Of Simulators up to iOS 12.
  case upToIOS12
  /// Of Simulators from iOS 13 on, which refuse the other.
  case sinceIOS13

  static let padByteCount = 8

  var padByte: UInt8 {
    switch self {
    case .upToIOS12: 0x08
    case .sinceIOS13: 0xFF
    }
  }

  /// Which one wrapped a key; `nil` where neither did. A device's wrap looks so once in 2^63.
  package static func of(_ wrapped: SensitiveBytes) -> SimulatorKeyStore? {
    wrapped.withBytes { bytes in
      guard bytes.count >= padByteCount else { return nil }
      return allCases.first { store in bytes.suffix(padByteCount).allSatisfy { $0 == store.padByte } }
    }
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
