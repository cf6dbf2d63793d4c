internal import KeychainFormats

/// In which of its Unicode forms a password fits a backup.
///
/// An accented letter can be one scalar or a letter and an accent. Both look the same, and which one a device got
/// depended on the computer that the password was typed on.
public enum PasswordForm: Sendable, Hashable, CaseIterable {
  /// Byte for byte as it was given.
  case asGiven
  /// With accents in their letters (NFC).
  case composed
  /// With accents behind their letters (NFD).
  case decomposed
}

extension Secret {
  /// The same text in another Unicode form; `nil` where it is not UTF-8 or that form is no other.
  ///
  /// Source: Unicode Standard Annex #15.
  public borrowing func inForm(_ form: PasswordForm) -> Secret? {
    guard form != .asGiven, withBytes({ $0.contains { $0 >= 0x80 } }) else { return nil }
    var scalars = WipedScalars(self)
    guard scalars.isValid else { return nil }
    scalars.decompose()
    if form == .composed { scalars.compose() }
    let other = scalars.utf8()
    let isSame = matches(other)
    return isSame ? nil : consume other
  }
}

/// The scalars of a password, overwritten at the end.
private struct WipedScalars: ~Copyable {
  private let memory: UnsafeMutableBufferPointer<UInt32>
  private var count: Int
  let isValid: Bool

  /// No scalar has more in its full decomposition than this for each of its bytes.
  private static let longestDecomposition = 4

  init(_ secret: borrowing Secret) {
    let memory = UnsafeMutableBufferPointer<UInt32>.allocate(capacity: secret.count * Self.longestDecomposition)
    memory.initialize(repeating: 0)
    let decoded = secret.withBytes { bytes -> (count: Int, isValid: Bool) in
      var decoder = UTF8()
      var iterator = bytes.makeIterator()
      var count = 0
      while true {
        switch decoder.decode(&iterator) {
        case .scalarValue(let scalar):
          memory[count] = scalar.value
          count += 1
        case .emptyInput: return (count, true)
        case .error: return (0, false)
        }
      }
    }
    self.memory = memory
    (count, isValid) = decoded
  }

  deinit {
    wipe(UnsafeMutableRawBufferPointer(memory))
    memory.deallocate()
  }

  // MARK: Decomposing

  mutating func decompose() {
    var index = 0
    while index < count {
      // What a scalar becomes may be decomposed again.
      if !split(at: index) { index += 1 }
    }
    order()
  }

  /// - Returns: Whether the scalar was replaced.
  private mutating func split(at index: Int) -> Bool {
    let scalar = memory[index]
    if let (first, second, third) = Hangul.parts(of: scalar) {
      memory[index] = first
      insert(second, at: index + 1)
      if let third { insert(third, at: index + 2) }
      return true
    }
    guard let (first, second) = UnicodeMapping.decompositions[scalar], first != scalar else { return false }
    memory[index] = first
    if second != 0 { insert(second, at: index + 1) }
    return true
  }

  private mutating func insert(_ scalar: UInt32, at index: Int) {
    guard count < memory.count else { return }
    var position = count
    while position > index {
      memory[position] = memory[position - 1]
      position -= 1
    }
    memory[index] = scalar
    count += 1
  }

  /// Puts accents of one letter into their canonical order; equal classes keep theirs.
  private mutating func order() {
    guard count > 1 else { return }
    for end in 1..<count {
      var index = end
      while index > 0 {
        let (left, right) = (Self.combiningClass(memory[index - 1]), Self.combiningClass(memory[index]))
        guard right != 0, left > right else { break }
        memory.swapAt(index - 1, index)
        index -= 1
      }
    }
  }

  // MARK: Composing

  mutating func compose() {
    var target = 0
    var starter: Int?
    var lastClass: UInt8 = 0
    for index in 0..<count {
      let scalar = memory[index]
      let combiningClass = Self.combiningClass(scalar)
      let isAdjacent = starter == target - 1
      if let starter, isAdjacent || lastClass < combiningClass, combiningClass != 0 || isAdjacent,
        let composed = Hangul.composed(memory[starter], scalar)
          ?? UnicodeMapping.compositions[UInt64(memory[starter]) << 32 | UInt64(scalar)]
      {
        memory[starter] = composed
        continue
      }
      memory[target] = scalar
      if combiningClass == 0 { starter = target }
      lastClass = combiningClass
      target += 1
    }
    count = target
  }

  private static func combiningClass(_ value: UInt32) -> UInt8 {
    Unicode.Scalar(value)?.properties.canonicalCombiningClass.rawValue ?? 0
  }

  func utf8() -> Secret {
    func units(_ value: UInt32) -> UTF8.EncodedScalar? { Unicode.Scalar(value).flatMap(UTF8.encode) }
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

/// The tables as they are looked up.
private enum UnicodeMapping {
  /// A scalar's two parts, the second 0 where there is one alone.
  static let decompositions: [UInt32: (UInt32, UInt32)] = {
    var parts: [UInt32: (UInt32, UInt32)] = [:]
    for table in [UnicodeTable.compositions, UnicodeTable.exclusions] {
      for index in stride(from: 0, to: table.count - 2, by: 3) {
        parts[table[index]] = (table[index + 1], table[index + 2])
      }
    }
    let singletons = UnicodeTable.singletons
    for index in stride(from: 0, to: singletons.count - 1, by: 2) {
      parts[singletons[index]] = (singletons[index + 1], 0)
    }
    return parts
  }()

  static let compositions: [UInt64: UInt32] = {
    var composed: [UInt64: UInt32] = [:]
    let table = UnicodeTable.compositions
    for index in stride(from: 0, to: table.count - 2, by: 3) {
      composed[UInt64(table[index + 1]) << 32 | UInt64(table[index + 2])] = table[index]
    }
    return composed
  }()
}

/// Syllables of Korean, which are computed. Source: The Unicode Standard, section 3.12.
private enum Hangul {
  private static let syllables: UInt32 = 0xAC00
  private static let leading: UInt32 = 0x1100
  private static let vowels: UInt32 = 0x1161
  private static let trailing: UInt32 = 0x11A7
  private static let leadingCount: UInt32 = 19
  private static let vowelCount: UInt32 = 21
  private static let trailingCount: UInt32 = 28
  private static let blockCount = vowelCount * trailingCount
  private static let syllableCount = leadingCount * blockCount

  static func parts(of scalar: UInt32) -> (UInt32, UInt32, UInt32?)? {
    guard scalar >= syllables, scalar < syllables + syllableCount else { return nil }
    let index = scalar - syllables
    let last = index % trailingCount
    return (
      leading + index / blockCount, vowels + index % blockCount / trailingCount, last == 0 ? nil : trailing + last
    )
  }

  static func composed(_ first: UInt32, _ second: UInt32) -> UInt32? {
    if first >= leading, first < leading + leadingCount, second >= vowels, second < vowels + vowelCount {
      return syllables + (first - leading) * blockCount + (second - vowels) * trailingCount
    }
    let isOpen = first >= syllables && first < syllables + syllableCount && (first - syllables) % trailingCount == 0
    guard isOpen, second > trailing, second < trailing + trailingCount else { return nil }
    return first + second - trailing
  }
}
