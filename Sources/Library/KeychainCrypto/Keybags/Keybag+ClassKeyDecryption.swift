import Basics
internal import KeychainFormats

extension Keybag.ClassKey {
  /// The result of unwrapping a class key.
  struct UnwrapResult {
    var entry: ClassKeys.Entry
    /// Whether the record has a password wrap, and a passcode key was given to unwrap it.
    var hasTriedPassword = false
    /// Whether the passcode key unwrapped the password wrap.
    var isPasswordUnwrapped = false

    /// Removes the device key's wrap if there is one, and stores the key.
    ///
    /// - Parameters:
    ///   - inner: The bytes inside the password's wrap: the key itself, or the key wrapped with the device key.
    ///   - wrap: The wraps of the record.
    ///   - deviceKey: The device key, or `nil` if it is not available.
    fileprivate mutating func removeDeviceWrap(
      from inner: consuming Secret, wrap: Keybag.WrapFlags, deviceKey: DeviceKey?
    ) throws(DataProtectionError) {
      guard wrap.contains(.device) else { return try entry.accept(inner, as: .available) }
      switch deviceKey {
      case .none: entry.availability = .deviceBound
      case .some(let deviceKey):
        let key = try inner.withBytes { (bytes) throws(DataProtectionError) in try deviceKey.unwrap(bytes) }
        try entry.accept(key, as: .availableThroughDevice)
      }
    }
  }

  var isPasswordWrapped: Bool { wrap?.contains(.password) == true }

  /// Removes the password's wrap (RFC 3394, with an integrity check), and then the device key's wrap (AES-CBC, without an
  /// integrity check).
  func open(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?
  ) throws(DataProtectionError) -> UnwrapResult {
    let record: ValidRecord
    switch validRecord() {
    case .success(let valid): record = valid
    case .failure(let problem): return UnwrapResult(entry: ClassKeys.Entry(unusable: problem.text))
    }
    var result = UnwrapResult(entry: ClassKeys.Entry(availability: .locked, publicKey: record.publicKey))
    guard record.wrap.contains(.password) else {
      try result.removeDeviceWrap(from: Secret(copying: record.wrappedKey), wrap: record.wrap, deviceKey: deviceKey)
      return result
    }
    switch passcodeKey {
    case .none: break
    case .some(let passcodeKey):
      result.hasTriedPassword = true
      if let inner = try KeyWrap.unwrap(record.wrappedKey, with: passcodeKey) {
        result.isPasswordUnwrapped = true
        try result.removeDeviceWrap(from: inner, wrap: record.wrap, deviceKey: deviceKey)
      } else {
        result.entry.availability = .damaged
      }
    }
    return result
  }

  /// The fields of a record that can be unwrapped.
  private struct ValidRecord {
    var wrap: Keybag.WrapFlags
    var wrappedKey: [UInt8]
    var publicKey: [UInt8]?
  }

  private struct Problem: Error {
    var text: String
  }

  private func validRecord() -> Result<ValidRecord, Problem> {
    guard let wrap else { return .failure(Problem(text: "it has no WRAP")) }
    guard !wrap.isEmpty, wrap.isSubset(of: [.device, .password]) else {
      return .failure(Problem(text: "its WRAP is \(wrap.rawValue)"))
    }
    guard let wrappedKey else { return .failure(Problem(text: "it has no WPKY")) }
    let size = ClassKeys.keySize + (wrap.contains(.password) ? KeyWrap.overhead : 0)
    guard wrappedKey.count == size else {
      return .failure(Problem(text: "its WPKY has \(wrappedKey.count) bytes, not \(size)"))
    }
    switch keyType {
    case .symmetric: return .success(ValidRecord(wrap: wrap, wrappedKey: wrappedKey))
    case .curve25519:
      guard let publicKey, publicKey.count == X25519.size else {
        return .failure(Problem(text: "it has no PBKY of \(X25519.size) bytes"))
      }
      return .success(ValidRecord(wrap: wrap, wrappedKey: wrappedKey, publicKey: publicKey))
    case .some(let other): return .failure(Problem(text: "its KTYP is \(other.rawValue)"))
    case .none: return .failure(Problem(text: "its KTYP is not a number"))
    }
  }
}

extension ClassKeys.Entry {
  /// Creates the entry of a class that exists but cannot be used.
  init(unusable problem: String) {
    self.init(availability: .damaged, problem: problem)
  }

  /// Stores a key. The public key of a Curve25519 class proves that the private key is right, even if the device key's
  /// wrap was removed without an integrity check.
  fileprivate mutating func accept(
    _ key: consuming Secret, as availability: ClassKeyAvailability
  ) throws(DataProtectionError) {
    if let publicKey, try X25519.publicKey(of: key) != publicKey {
      // After a password wrap with its integrity check, only a wrong device key can give wrong bytes.
      self.availability = availability == .availableThroughDevice ? .deviceBound : .damaged
      problem = availability == .availableThroughDevice ? nil : "its PBKY does not match its private key"
      return
    }
    self.availability = availability
    self.key = ClassKeys.WrappingKey(key)
  }
}
