import Basics
internal import CUTF8Proc
internal import KeychainFormats

/// In which of its forms a password fits a backup.
///
/// An accented letter can be one scalar or a letter and an accent. Both look the same, and which one a device got
/// depended on the computer that the password was typed on. Windows programs put a byte order mark before the text of a
/// file or a pipe, which nobody typed.
public enum PasswordForm: Sendable, Hashable, CaseIterable {
  /// Byte for byte as it was given.
  case asGiven
  /// Without the byte order mark before it, and else byte for byte.
  case withoutMark
  /// With accents in their letters (NFC), and without a byte order mark.
  case composed
  /// With accents behind their letters (NFD), and without a byte order mark.
  case decomposed
}

extension Secret {
  /// Returns the same text in another form; `nil` if it is not UTF-8 or that form is no other.
  ///
  /// Source: Unicode Standard Annex #15.
  public borrowing func inForm(_ form: PasswordForm) -> Secret? {
    guard form != .asGiven else { return nil }
    let markCount = withBytes { UTF8Scalars.byteOrderMarkCount(of: $0) }
    let text = withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[markCount...])) }
    if form == .withoutMark {
      // A mark alone is a password only if somebody chose it.
      guard markCount > 0, !text.isEmpty else { return nil }
      return text
    }
    guard text.withBytes({ $0.contains { $0 >= 0x80 } }) else { return nil }
    var scalars = WipedScalars(decomposing: text)
    guard scalars.isValid else { return nil }
    if form == .composed { scalars.compose() }
    let other = scalars.utf8()
    let isSame = text.matches(other)
    return isSame ? nil : consume other
  }
}

/// The scalars of a password, overwritten at the end. The library works in this memory and takes none of its own.
private struct WipedScalars: ~Copyable {
  private let memory: UnsafeMutableBufferPointer<Int32>
  private var count: Int
  let isValid: Bool

  /// No scalar has more in its full decomposition than this for each of its bytes.
  private static let maximumDecompositionLength = 4
  /// utf8proc 2.8 loses this letter behind a syllable of Korean that ends in a vowel: it counts it among the consonants
  /// that end one, of which it is the place before the first. It is composed with nothing.
  private static let beforeTrailingConsonants: Int32 = 0x11A7

  /// The text's canonical decomposition, accents in their canonical order.
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

  /// Puts the accents back into their letters.
  mutating func compose() {
    var (start, end) = (0, 0)
    while start < count {
      let next = memory[start..<count].dropFirst().firstIndex(of: Self.beforeTrailingConsonants) ?? count
      let composed = utf8proc_normalize_utf32(
        memory.baseAddress.map { $0 + start }, next - start,
        utf8proc_option_t(UTF8PROC_STABLE.rawValue | UTF8PROC_COMPOSE.rawValue))
      for offset in 0..<max(0, composed) { memory[end + offset] = memory[start + offset] }
      (start, end) = (next, end + max(0, composed))
    }
    count = end
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
