import Basics
internal import CUTF8Proc
internal import KeychainFormats

/// The forms of a password that are tried with a backup.
///
/// An accented letter can be one scalar, or a letter and an accent. Both forms look the same. The form depends on the
/// computer on which the password was typed. Windows programs add a byte order mark to the start of a file or pipe.
public enum PasswordNormalization: Sendable, Hashable, CaseIterable {
  /// Byte for byte as the user typed it.
  case asTyped
  /// Without a byte order mark, and otherwise unchanged.
  case withoutMark
  /// With composed accents (NFC), and without a byte order mark.
  case composed
  /// With decomposed accents (NFD), and without a byte order mark.
  case decomposed
}

extension Secret {
  /// Returns the same text in another form, or `nil` if it is not UTF-8 or already has that form.
  ///
  /// Source: Unicode Standard Annex #15.
  package borrowing func normalized(_ form: PasswordNormalization) -> Secret? {
    guard form != .asTyped else { return nil }
    let markCount = withBytes { UTF8Scalars.byteOrderMarkCount(of: $0) }
    let text = withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[markCount...])) }
    if form == .withoutMark {
      // A password that consists only of a byte order mark must have been chosen deliberately.
      guard markCount > 0, !text.isEmpty else { return nil }
      return text
    }
    guard text.withBytes({ $0.contains { $0 >= 0x80 } }) else { return nil }
    var scalars = SecureScalars(decomposing: text)
    guard scalars.isValid else { return nil }
    if form == .composed { scalars.compose() }
    let normalized = scalars.utf8()
    let isUnchanged = text.matches(normalized)
    return isUnchanged ? nil : consume normalized
  }
}

/// The scalars of a password, which are overwritten afterwards. utf8proc works in this memory and allocates none.
private struct SecureScalars: ~Copyable {
  private let memory: UnsafeMutableBufferPointer<Int32>
  private var count: Int
  let isValid: Bool

  /// The maximum number of scalars in the decomposition for each UTF-8 byte of the text.
  private static let maximumDecompositionLength = 4
  /// The Hangul code point before the first final consonant. It never composes, but utf8proc 2.8 treats it as a final
  /// consonant and drops it after a syllable that ends in a vowel.
  private static let beforeTrailingConsonants: Int32 = 0x11A7

  /// Creates the canonical decomposition of a text, with accents in canonical order.
  init(decomposing secret: borrowing Secret) {
    let memory = UnsafeMutableBufferPointer<Int32>.allocate(capacity: secret.count * Self.maximumDecompositionLength)
    memory.initialize(repeating: 0)
    let written = secret.withBytes { bytes in
      bytes.withMemoryRebound(to: UInt8.self) { text in
        utf8proc_decompose(
          text.baseAddress, text.count, memory.baseAddress, memory.count,
          utf8proc_option_t(UTF8PROC_STABLE.rawValue | UTF8PROC_DECOMPOSE.rawValue))
      }
    }
    self.memory = memory
    isValid = written >= 0 && written <= memory.count
    count = isValid ? written : 0
  }

  deinit {
    wipe(UnsafeMutableRawBufferPointer(memory))
    memory.deallocate()
  }

  /// Composes letters and accents in place. Each part that starts with `beforeTrailingConsonants` is composed
  /// separately, so that utf8proc cannot drop this code point.
  mutating func compose() {
    var partStart = 0
    var writtenCount = 0
    while partStart < count {
      let partEnd = memory[partStart..<count].dropFirst().firstIndex(of: Self.beforeTrailingConsonants) ?? count
      let result = utf8proc_normalize_utf32(
        memory.baseAddress.map { $0 + partStart }, partEnd - partStart,
        utf8proc_option_t(UTF8PROC_STABLE.rawValue | UTF8PROC_COMPOSE.rawValue))
      // A negative result is an error.
      let composedCount = max(0, result)
      for offset in 0..<composedCount { memory[writtenCount + offset] = memory[partStart + offset] }
      partStart = partEnd
      writtenCount += composedCount
    }
    count = writtenCount
  }

  func utf8() -> Secret {
    func units(_ value: Int32) -> UTF8.EncodedScalar? { Unicode.Scalar(UInt32(value)).flatMap(UTF8.encode) }
    let size = memory.prefix(count).reduce(0) { $0 + (units($1)?.count ?? 0) }
    return Secret(count: size) { target in
      var offset = 0
      for value in memory.prefix(count) {
        for unit in units(value) ?? UTF8.encodedReplacementCharacter where offset < size {
          target[offset] = unit
          offset += 1
        }
      }
    }
  }
}
