import KeyhaulKit

/// A reader for `otpauth` addresses that does not copy the secret to unprotected memory.
struct OTPAuthURIReader: ~Copyable {
  private static let scheme = Array("otpauth://".utf8)

  private(set) var parameters = OneTimePassword.Parameters()
  /// The address that `address()` returns, including the secret.
  private var addressText = SensitiveBuffer()
  private var hasRawSecret = false

  init() {}

  /// Returns whether bytes are an address: UTF-8, on one line.
  static func isAddress(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count > scheme.count && bytes.starts(with: scheme) && !bytes.contains { $0 < 0x20 || $0 == 0x7F }
      && UTF8Scalars.isValid(bytes)
  }

  /// Returns whether an address has a parameter named `secret`.
  static func containsSecret(_ bytes: UnsafeRawBufferPointer) -> Bool {
    queryParts(of: bytes).contains { part in nameAndValueRange(of: part, in: bytes)?.name == "secret" }
  }

  /// Uses bytes as the secret of the address.
  mutating func add(rawSecret: SensitiveBytes) {
    parameters.secret = rawSecret.withBytes { Base32.digits(of: $0) }
    hasRawSecret = true
  }

  /// Returns the address, including the secret.
  borrowing func address() -> SensitiveBytes { addressText.bytes() }

  /// Reads an address.
  ///
  /// - Returns: The reason why the address cannot be used; `nil` if it can.
  mutating func read(_ bytes: UnsafeRawBufferPointer) -> OneTimePassword.Problem? {
    let pathEnd = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
    append(bytes[..<pathEnd])
    // After the scheme, the path is "type/label".
    let path = bytes[Self.scheme.count..<pathEnd]
    let slash = path.firstIndex(of: UInt8(ascii: "/")) ?? path.endIndex
    let typeProblem = readType(path[..<slash])
    readLabel(path[slash...].dropFirst())
    let queryProblem = readQuery(of: bytes)
    if hasRawSecret {
      addressText.append(pathEnd == bytes.endIndex ? "?secret=" : "&secret=")
      parameters.secret.withBytes { addressText.append($0) }
    }
    return typeProblem ?? queryProblem ?? (parameters.secret.isEmpty ? .noSecret : nil)
  }

  private mutating func readType(_ bytes: Slice<UnsafeRawBufferPointer>) -> OneTimePassword.Problem? {
    switch String(decoding: bytes, as: UTF8.self).lowercased() {
    case "totp": return nil
    case "hotp":
      parameters.factor = .counter(0)
      return nil
    default: return .unknownType
    }
  }

  /// Reads the query, and appends it to the address with the secret in plain Base32.
  ///
  /// - Returns: The first problem; `nil` if there is none.
  private mutating func readQuery(of bytes: UnsafeRawBufferPointer) -> OneTimePassword.Problem? {
    var problem: OneTimePassword.Problem?
    var names: Set<String> = []
    for (index, part) in Self.queryParts(of: bytes).enumerated() {
      addressText.append(index == 0 ? "?" : "&")
      guard let (name, valueRange) = Self.nameAndValueRange(of: part, in: bytes) else {
        append(bytes[part])
        continue
      }
      if !names.insert(name).inserted { problem = problem ?? .repeatedParameter }
      if name == "secret", let digits = Base32.digits(in: bytes[valueRange]), !digits.isEmpty {
        append(bytes[part.lowerBound..<valueRange.lowerBound])
        digits.withBytes { addressText.append($0) }
        parameters.secret = digits
      } else {
        append(bytes[part])
        problem = problem ?? readParameter(name, bytes[valueRange])
      }
    }
    return problem
  }

  /// Reads "issuer:account" or "account".
  private mutating func readLabel(_ bytes: Slice<UnsafeRawBufferPointer>) {
    let label = Percent.decoded(bytes)
    if let colon = label.firstIndex(of: ":") {
      parameters.issuer = label[..<colon].trimmingSpaces()
      parameters.account = label[label.index(after: colon)...].trimmingSpaces()
    } else {
      parameters.account = label.trimmingSpaces()
    }
  }

  private mutating func readParameter(
    _ name: String, _ bytes: Slice<UnsafeRawBufferPointer>
  ) -> OneTimePassword.Problem? {
    // A secret must not be copied to a string, because a string cannot be erased from memory.
    guard name != "secret" else { return bytes.isEmpty ? .noSecret : .notBase32 }
    let value = Percent.decoded(bytes)
    switch name {
    case "issuer":
      if !value.isEmpty { parameters.issuer = value.trimmingSpaces() }
    case "algorithm":
      let hashName = value.uppercased().filter { $0 != "-" }
      let digestName = hashName.hasPrefix("HMAC") ? String(hashName.dropFirst(4)) : hashName
      guard let algorithm = OneTimePassword.Algorithm(rawValue: digestName) else { return .unknownAlgorithm }
      parameters.algorithm = algorithm
    case "digits":
      guard let count = UInt8(value), (1...10).contains(count) else { return .digitCount }
      parameters.digitCount = count
    case "period":
      guard case .time = parameters.factor else { break }
      guard let period = UInt32(value), period > 0 else { return .period }
      parameters.factor = .time(period: period)
    case "counter":
      guard case .counter = parameters.factor else { break }
      guard let counter = UInt64(value) else { return .counter }
      parameters.factor = .counter(counter)
    default: break
    }
    return nil
  }

  /// Appends a part of the address. A space, which no address may contain, becomes `%20`.
  private mutating func append(_ bytes: Slice<UnsafeRawBufferPointer>) {
    for byte in bytes { if byte == 0x20 { addressText.append("%20") } else { addressText.append(byte) } }
  }

  /// Returns the ranges of the query's parameters, such as "name=value". A part may lack a value, or be empty.
  private static func queryParts(of bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
    guard let query = bytes.firstIndex(of: UInt8(ascii: "?")) else { return [] }
    var parts: [Range<Int>] = []
    var start = query + 1
    for index in start..<bytes.endIndex where bytes[index] == UInt8(ascii: "&") {
      parts.append(start..<index)
      start = index + 1
    }
    return parts + [start..<bytes.endIndex]
  }

  /// Returns a parameter's name in lower case and the range of its value; `nil` if the part contains no "=".
  private static func nameAndValueRange(
    of part: Range<Int>, in bytes: UnsafeRawBufferPointer
  ) -> (name: String, valueRange: Range<Int>)? {
    guard let equals = bytes[part].firstIndex(of: UInt8(ascii: "=")) else { return nil }
    return (Percent.decoded(bytes[part.lowerBound..<equals]).lowercased(), equals + 1..<part.upperBound)
  }
}

extension StringProtocol {
  /// Returns the text without leading and trailing spaces.
  fileprivate func trimmingSpaces() -> String {
    var text = self[...]
    while text.first == " " { text = text.dropFirst() }
    while text.last == " " { text = text.dropLast() }
    return String(text)
  }
}
